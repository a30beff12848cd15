"""Sections 4.1 and 4.2 of Chen et al., sentence by sentence: the fabric, and the EFI of links."""

from experiments.multicast.judging import (
    GRIDS_LOST,
    SIZES_LOST,
    below,
    ends,
    gap_rows,
    judged,
    not_worse,
    side_by_side,
)
from experiments.multicast.routing import (
    EARLIER,
    FIXED,
    FOUR,
    GRIDS_2D,
    GRIDS_2D_4P,
    GRIDS_3D,
    GRIDS_3D_4P,
    NAMES,
    ONE,
    OURS,
    RANDOM,
    RANDOM_4P,
    TREES,
    Routed,
)
from raddle.results.reproduction import Row, cell, finding, lost
from raddle.statistics.samples import mean_interval


def section_4_1_and_2(routed: Routed) -> list[Row]:
    """All rows, in the order of the paper."""
    return [
        *fabric_rows(),
        *other_colours(routed),
        *efi_one(routed),
        *efi_four(routed),
        *efi_conclusions(routed),
    ]


def fabric_rows() -> list[Row]:
    """Section 4.1 and the corollaries: counts that follow from the fabric."""
    m, q, p, k, w, cns, colours = 16, 32, 6, 32, 16, 64, 32
    tns = m * p
    switches = cns * (q + m) + tns * (k + w)
    figures = {
        "CNs of the full fabric": (512, k * w),
        "TNs": (96, tns),
        "terminals of the full fabric": (262_144, k * w * q * m),
        "switches of 64 CNs": (7_680, switches),
        "terminals of 64 CNs": (32_768, cns * q * m),
        "nodes of 64 CNs": (40_448, switches + cns * q * m),
        "spanning trees of 32 colours": (512, colours * m),
    }
    rows = [
        cell(item="4.1", setting=name, published=published, ours=ours, kind="exact")
        for name, (published, ours) in figures.items()
    ]
    rows.append(
        cell(
            item="2.1",
            setting="groups of 40-port switches with 256 entries, corollary 2",
            published=5_120,
            ours=20 * 256,
            kind="exact",
        )
    )
    rows += [
        lost(f"Figure {figure}({panel})", name, "a picture: only what the text says of it is left")
        for figure in (9, 10)
        for panel, name in zip(
            "abcdef",
            ("max EFI", "mean EFI", "max TFI", "mean TFI", "trees left", "time"),
            strict=True,
        )
    ]
    rows += [
        lost("4.1", "numbers of random groups", "chosen: 1,000, 3,000, 5,000"),
        lost("4.1", "2-D grids with 4 processes", "chosen: 512x256, 362x362, 200x655"),
    ]
    return rows


def other_colours(routed: Routed) -> list[Row]:
    """Section 4.1: with other numbers of colours the conclusions are the same."""
    rows = []
    for colours in sorted({colours for _, colours in routed.colours}):
        engines = routed.colours.get(("random-1000-4p", colours))
        if engines is None:
            continue
        ours, earlier = (engines[e]["max_tfi"] for e in (FIXED, EARLIER))
        rows.append(
            finding(
                item="4.1",
                setting=f"{colours} colours, random-1000-4p",
                statement="with another number of colours the conclusions are the same: MR4LMS "
                "merges most",
                holds=earlier > ours,
                note=f"max TFI {earlier} and {ours}",
            )
        )
    return rows


def efi_one(routed: Routed) -> list[Row]:
    """Section 4.2.1: EFI, one process per terminal."""
    rows = []
    item = "4.2.1"
    for key, name in (("max_efi", "max"), ("mean_efi", "mean")):
        lower = [below(routed, GRIDS_2D, key, engine) for engine in OURS]
        rows.append(
            finding(
                item=item,
                setting=f"(1) 2-D grids, {name} EFI",
                statement=f"2-D grids: both C-MR4LMS have the lower {name} EFI than MR4LMS",
                holds=lower == [3, 3],
                note=f"{side_by_side(routed, GRIDS_2D, key)}; ours balances EFI first, which may "
                "be more than the paper's MR4LMS did",
            )
        )
    for key, name in (("max_efi", "max"), ("mean_efi", "mean")):
        lower = [below(routed, GRIDS_3D, key, engine) for engine in OURS]
        rows.append(
            finding(
                item=item,
                setting=f"(2) 3-D grids, {name} EFI",
                statement="3-D grids: C-MR4LMS is sometimes better and sometimes worse than MR4LMS,"
                " mostly worse",
                holds=all(0 < count < len(GRIDS_3D) for count in lower),
                note=side_by_side(routed, GRIDS_3D, key),
            )
        )
    for pattern in RANDOM:
        gaps = {engine: routed.gap(pattern, engine, "max_efi") for engine in OURS}
        rows += [
            finding(
                item=item,
                setting=f"(3) {pattern}, {NAMES[engine]}",
                statement="random groups: MR4LMS has the clearly lower max EFI",
                holds=judged(gap, lambda value: value > 0),
                ours=gap.mean,
                ci=ends(gap),
                unit="groups more",
                note=SIZES_LOST,
            )
            for engine, gap in gaps.items()
        ]
    largest = mean_interval(routed.over_seeds(RANDOM[-1], FIXED, "max_efi"))
    rows.append(
        cell(
            item=item,
            setting="(3) max EFI of C-MR4LMS, random groups",
            published=69,
            ours=largest.mean,
            kind="chosen",
            ci=ends(largest),
            decide_by_ci=True,
            note=f"mean over {largest.n} seeds of 5,000 groups; {SIZES_LOST}",
        )
    )
    return rows


def efi_four(routed: Routed) -> list[Row]:
    """Section 4.2.2: EFI, four processes per terminal."""
    rows = []
    item = "4.2.2"
    for key, name in (("max_efi", "max"), ("mean_efi", "mean")):
        lower = [below(routed, GRIDS_2D_4P, key, engine) for engine in OURS]
        rows.append(
            finding(
                item=item,
                setting=f"(1) 2-D grids, {name} EFI",
                statement=f"2-D grids: both C-MR4LMS have the higher {name} EFI than MR4LMS",
                holds=lower == [0, 0],
                note=f"{side_by_side(routed, GRIDS_2D_4P, key)}; {GRIDS_LOST}",
            )
        )
        lower = [below(routed, GRIDS_3D_4P, key, engine) for engine in OURS]
        rows.append(
            finding(
                item=item,
                setting=f"(2) 3-D grids, {name} EFI",
                statement="3-D grids: C-MR4LMS is sometimes better and sometimes worse than MR4LMS",
                holds=all(0 < count < len(GRIDS_3D_4P) for count in lower),
                note=side_by_side(routed, GRIDS_3D_4P, key),
            )
        )
    for pattern in RANDOM_4P:
        for engine in OURS:
            gap = routed.gap(pattern, engine, "max_efi")
            rows.append(
                finding(
                    item=item,
                    setting=f"(3) {pattern}, {NAMES[engine]}",
                    statement="random groups: both C-MR4LMS are better than MR4LMS",
                    holds=judged(gap, lambda value: value < 0),
                    ours=gap.mean,
                    ci=ends(gap),
                    unit="groups more",
                    note=f"max EFI, mean over {gap.n} seeds; {SIZES_LOST}",
                )
            )
    return rows


def efi_conclusions(routed: Routed) -> list[Row]:
    """Section 4.2.3."""
    few = [p for p in ONE + FOUR if routed.get(p, FIXED, "groups") < TREES]
    better = [below(routed, few, "max_efi", engine) for engine in OURS]
    merging = [p for p in ONE + FOUR if routed.get(p, EARLIER, "max_tfi") > 1]
    kept = [p for p in ONE + FOUR if p not in merging and routed.get(p, FIXED, "groups") >= TREES]
    worse = [len(kept) - below(routed, kept, "max_efi", engine) for engine in OURS]
    ahead = [below(routed, merging, "max_efi", engine) for engine in OURS]
    rows = [
        finding(
            item="4.2.3",
            setting="(1) fewer groups than trees",
            statement="fewer groups than trees: C-MR4LMS is generally slightly better in EFI",
            holds=min(better) * 2 > len(few),
            note=f"{', '.join(few)}: lower max EFI in {better[0]} (fixed) and {better[1]} (dynamic)"
            f" of {len(few)}",
        ),
        finding(
            item="4.2.3",
            setting="(2) C-MR4LMS merges, MR4LMS does not",
            statement="where only C-MR4LMS merges, MR4LMS is generally better in EFI",
            holds=min(worse) * 2 > len(kept),
            note=f"in {worse[0]} (fixed) and {worse[1]} (dynamic) of {len(kept)} patterns",
        ),
        finding(
            item="4.2.3",
            setting="(3) all merge",
            statement="where all three merge, C-MR4LMS is generally better in EFI",
            holds=min(ahead) * 2 > len(merging),
            note=f"{', '.join(merging)}: lower max EFI in {ahead[0]} (fixed) and {ahead[1]} "
            f"(dynamic) of {len(merging)}",
        ),
        not_worse(routed, "4.2.3", "(4) dynamic and fixed", "EFI", ("max_efi", "mean_efi")),
    ]
    return rows + gap_rows(routed, "max_efi", "4.2.3", 88, 594)
