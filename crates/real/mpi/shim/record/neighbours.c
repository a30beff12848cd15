/* Neighbourhood collectives are recorded as their messages: who are the neighbours? */
#include <stdlib.h>

#include "record/record.h"

/* Ranks of the neighbours in the order of MPI 4.0, section 8.6; MPI_PROC_NULL are places of a grid without one. */
struct neighbours {
    int in, out;
    int *sources, *destinations;
};

static int make_room(struct neighbours *neighbours, int in, int out)
{
    neighbours->in = in;
    neighbours->out = out;
    neighbours->sources = malloc(((size_t)in + 1) * sizeof(int));
    neighbours->destinations = malloc(((size_t)out + 1) * sizeof(int));
    return neighbours->sources != NULL && neighbours->destinations != NULL;
}

static int in_grid(MPI_Comm comm, struct neighbours *found)
{
    int dimensions = 0;
    if (PMPI_Cartdim_get(comm, &dimensions) != MPI_SUCCESS || !make_room(found, 2 * dimensions, 2 * dimensions))
        return 0;
    for (int at = 0; at < dimensions; at++) {
        int *pair = found->sources + 2 * at;
        if (PMPI_Cart_shift(comm, at, 1, &pair[0], &pair[1]) != MPI_SUCCESS)
            return 0;
        found->destinations[2 * at] = pair[0];
        found->destinations[2 * at + 1] = pair[1];
    }
    return 1;
}

static int in_graph(MPI_Comm comm, int rank, struct neighbours *found)
{
    int count = 0;
    return PMPI_Graph_neighbors_count(comm, rank, &count) == MPI_SUCCESS && make_room(found, count, count) &&
           PMPI_Graph_neighbors(comm, rank, count, found->sources) == MPI_SUCCESS &&
           PMPI_Graph_neighbors(comm, rank, count, found->destinations) == MPI_SUCCESS;
}

static int in_distributed_graph(MPI_Comm comm, struct neighbours *found)
{
    int in = 0, out = 0, weighted = 0;
    if (PMPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted) != MPI_SUCCESS || !make_room(found, in, out))
        return 0;
    /* Weights are written even if the caller does not want them, unless the graph has none. */
    int *weights = malloc(((size_t)in + (size_t)out + 1) * sizeof(int));
    int done = weights != NULL &&
               PMPI_Dist_graph_neighbors(comm, in, found->sources, weighted ? weights : MPI_UNWEIGHTED, out, found->destinations,
                                         weighted ? weights + in : MPI_UNWEIGHTED) == MPI_SUCCESS;
    free(weights);
    return done;
}

static int find_neighbours(MPI_Comm comm, int rank, struct neighbours *found)
{
    int topology = MPI_UNDEFINED;
    if (PMPI_Topo_test(comm, &topology) != MPI_SUCCESS)
        return 0;
    switch (topology) {
    case MPI_CART: return in_grid(comm, found);
    case MPI_GRAPH: return in_graph(comm, rank, found);
    case MPI_DIST_GRAPH: return in_distributed_graph(comm, found);
    default: return 0;
    }
}

/* The neighbours that exist, with the bytes that are sent to each or come from it. */
static struct raddle_share *list(const int ranks[], int count, const struct shares *shares, size_t *listed)
{
    struct raddle_share *all = malloc(((size_t)count + 1) * sizeof *all);
    *listed = 0;
    for (int at = 0; all != NULL && at < count; at++)
        if (ranks[at] != MPI_PROC_NULL)
            all[(*listed)++] = (struct raddle_share){.bytes = raddle_share_bytes(shares, at), .rank = ranks[at]};
    return all;
}

void raddle_note_neighbours(uint64_t begun, struct shares sent, struct shares received, MPI_Comm comm, uintptr_t request)
{
    const struct known *known = raddle_recorded(comm);
    struct neighbours found = {0, 0, NULL, NULL};
    if (known == NULL || !find_neighbours(comm, known->rank, &found)) {
        note_pass();
    } else {
        size_t out = 0, in = 0;
        struct raddle_share *to = list(found.destinations, found.out, &sent, &out);
        struct raddle_share *from = list(found.sources, found.in, &received, &in);
        if (to != NULL && from != NULL)
            raddle_recorder->neighbours(begun, known->number, to, out, from, in, request);
        free(to);
        free(from);
    }
    free(found.sources);
    free(found.destinations);
}
