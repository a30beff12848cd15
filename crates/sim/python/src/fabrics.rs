//! Maps of other programs, in and out.

use pyo3::prelude::*;
use raddle_experiment::{
    DiskFiles, FabricInput, ImportRequest, fabric_net, fabric_text, import_map, load_fabric,
};

use crate::{error::raise, unknown_format};

/// What a name of a format stands for.
pub(crate) fn input(name: &str) -> PyResult<FabricInput> {
    match name {
        "auto" => Ok(FabricInput::Auto),
        "toml" => Ok(FabricInput::Toml),
        "experiment" => Ok(FabricInput::Experiment),
        "hpcc-ns3" => Ok(FabricInput::HpccNs3),
        "ibnetdiscover" => Ok(FabricInput::Ibnetdiscover),
        "ibsim" => Ok(FabricInput::Ibsim),
        other => Err(unknown_format(
            other,
            "auto, toml, experiment, hpcc-ns3, ibnetdiscover, ibsim",
        )),
    }
}

/// Read a fabric of InfiniBand tools (`format`: "auto", "ibnetdiscover", "ibsim"); JSON description and the map as TOML.
#[pyfunction]
pub(crate) fn fabric_import(
    py: Python<'_>,
    text: &str,
    path: &str,
    format: &str,
    rate: Option<&str>,
    delay: Option<&str>,
    split_ports: bool,
) -> PyResult<(String, String)> {
    let input = input(format)?;
    py.detach(|| {
        let request = ImportRequest {
            input,
            rate,
            delay,
            split_ports,
        };
        let (fabric, found) = import_map(text, path, &request)?;
        Ok((found.to_string(), fabric_text(&fabric, false)))
    })
    .map_err(|error| raise(py, error))
}

/// A map of any kind (`format` as for `fabric_check`) as text in `out_format`: "ibsim", "toml" or "hpcc-ns3".
#[pyfunction]
pub(crate) fn fabric_export(
    py: Python<'_>,
    text: &str,
    path: &str,
    format: &str,
    out_format: &str,
) -> PyResult<String> {
    let input = input(format)?;
    if !matches!(out_format, "ibsim" | "toml" | "hpcc-ns3") {
        return Err(unknown_format(out_format, "ibsim, toml, hpcc-ns3"));
    }
    py.detach(|| {
        let fabric = load_fabric(text, path, input, &DiskFiles)?;
        Ok(if out_format == "ibsim" {
            fabric_net(&fabric)?
        } else {
            fabric_text(&fabric, out_format == "hpcc-ns3")
        })
    })
    .map_err(|error| raise(py, error))
}
