/* How a shim is attached to the core. */
#include <stdio.h>
#include <string.h>

#include "functions.h"
#include "messages/messages.h"
#include "record/record.h"


static void read_version(int version[3])
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    PMPI_Get_library_version(text, &length);
    const char *at = strstr(text, RADDLE_LIBRARY == RADDLE_OPEN_MPI ? "Open MPI v" : "MPICH Version:");
    at = at == NULL ? text : at + strcspn(at, "0123456789");
    if (sscanf(at, "%d.%d.%d", &version[0], &version[1], &version[2]) < 2)
        version[0] = version[1] = version[2] = 0;
}

static int built_for(void)
{
#if defined(OPEN_MPI)
    return OMPI_MAJOR_VERSION;
#else
    return MPICH_NUMVERSION / 10000000;
#endif
}

/* What the matcher and rails have us do. */
static const struct raddle_channel channel = {
    .send = raddle_send_parcel,
    .deliver = raddle_deliver,
    .fetch = raddle_fetch,
    .fetch_aside = raddle_fetch_aside,
    .set_aside = raddle_set_aside,
    .land = raddle_land,
    .landed = raddle_landed,
    .fetch_offered = raddle_fetch_offered,
    .send_offered = raddle_send_offered,
    .offer_sent = raddle_offer_sent,
};

__attribute__((visibility("default")))
const struct raddle_shim *raddle_shim_attach(const struct raddle_core *core, uint32_t abi, char *why, size_t why_bytes)
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
    raddle_process = core->process;
    raddle_collectives = core->collectives;
    raddle_recorder = core->recorder;
    raddle_messages = core->messages;
    raddle_observers = (struct raddle_observers){.number = raddle_number_of, .forget_scope = raddle_forget_scope};
    shim.abi = RADDLE_ABI;
    shim.library = RADDLE_LIBRARY;
    shim.entries = raddle_entries;
    shim.entry_count = raddle_entry_count;
    shim.plain = raddle_plain_calls;
    shim.matched = raddle_matched;
    shim.status_bytes = sizeof(MPI_Status);
    shim.channel = &channel;
    return &shim;
}
