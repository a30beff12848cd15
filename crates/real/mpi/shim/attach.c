/* How a shim is attached to the core. */
#include <stdio.h>
#include <string.h>

#include "messages/messages.h"
#include "record/record.h"
#include "shim.h"

const struct raddle_core *raddle_core;
const struct raddle_recorder *raddle_recorder;
const struct raddle_messages *raddle_messages;

static void read_version(int version[3])
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    PMPI_Get_library_version(text, &length);
    const char *at = strstr(text, RADDLE_LIBRARY == 1 ? "Open MPI v" : "MPICH Version:");
    at = at == NULL ? text : at + strcspn(at, "0123456789");
    if (sscanf(at, "%d.%d.%d", &version[0], &version[1], &version[2]) < 2)
        version[0] = version[1] = version[2] = 0;
}

static int built_for(void)
{
#if RADDLE_LIBRARY == 1
    return OMPI_MAJOR_VERSION;
#else
    return MPICH_NUMVERSION / 10000000;
#endif
}

const struct raddle_shim *raddle_shim_attach(const struct raddle_core *core, uint32_t abi, char *why, size_t why_bytes,
                                             const struct raddle_recorder *recorder, const struct raddle_messages *messages)
{
    static struct raddle_shim shim;
    if (abi != RADDLE_ABI) {
        snprintf(why, why_bytes, "the shim was built with another version of libraddle_mpi.so");
        return NULL;
    }
    read_version(shim.version);
    if (shim.version[0] != built_for()) {
        snprintf(why, why_bytes, "the shim was built for version %d of the MPI library, and %d.%d.%d is loaded", built_for(),
                 shim.version[0], shim.version[1], shim.version[2]);
        return NULL;
    }
    raddle_core = core;
    raddle_recorder = recorder;
    raddle_messages = messages;
    shim.abi = RADDLE_ABI;
    shim.library = RADDLE_LIBRARY;
    shim.entries = raddle_entries;
    shim.entry_count = raddle_entry_count;
    shim.plain = raddle_plain_calls;
    shim.matched = raddle_matched;
    shim.status_bytes = sizeof(MPI_Status);
    shim.channel = &raddle_channel_calls;
    return &shim;
}
