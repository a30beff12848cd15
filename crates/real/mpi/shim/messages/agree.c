/* Which communicators are ours: agreed by all their ranks when they are made. */
#include <stdlib.h>

#include "messages/messages.h"

enum { MOST_CONTEXTS = 1 << 16, LEAST_TAGS = 32766 };

int raddle_scopes;

static int agreed;           /* some messages may be ours */
static int force;            /* communicators of one node too */
static uint64_t *nodes;      /* of each rank of MPI_COMM_WORLD */
static int world_size;
static uint32_t next_context; /* never used here, nor any after it */

/* What this rank can do: 0, or a number that all that can do the same have. */
static uint64_t ability(enum raddle_plain_state *why)
{
    int level = MPI_THREAD_MULTIPLE, size = 0, flag = 0, *most = NULL;
    MPI_Comm parent = MPI_COMM_NULL;
    *why = RADDLE_SETTINGS;
    if (raddle_messages == NULL)
        return 0;
    PMPI_Query_thread(&level);
    PMPI_Comm_get_parent(&parent);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &flag);
    if (level == MPI_THREAD_MULTIPLE)
        *why = RADDLE_THREADS;
    else if (parent != MPI_COMM_NULL)
        *why = RADDLE_SPAWNED;
    else if (!flag || *most < LEAST_TAGS || !raddle_hook())
        *why = RADDLE_LIBRARY_UNKNOWN;
    else
        return raddle_messages->ability(*most);
    return 0;
}

/* Whether all ranks can work together; and tells the core that MPI runs. */
static int has_same(uint64_t mine, int rank)
{
    uint64_t faults = raddle_process->faults();
    uint64_t own[4] = {mine, ~mine, faults, ~faults}, most[4] = {0};
    if (PMPI_Allreduce(own, most, 4, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD) != MPI_SUCCESS)
        return 0;
    raddle_process->introduce(rank, most[2] == faults && most[3] == ~faults);
    return most[0] == mine && most[1] == ~mine;
}

/* The ranks of a communicator, both ways. 0: one is not in MPI_COMM_WORLD. */
static int translate(MPI_Comm comm, struct scope *scope)
{
    MPI_Group group = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
    int known = 1, same = scope->size == world_size;
    int *own = malloc((size_t)scope->size * sizeof *own);
    scope->world = malloc((size_t)scope->size * sizeof *scope->world);
    scope->ranks = malloc((size_t)world_size * sizeof *scope->ranks);
    if (own == NULL || scope->world == NULL || scope->ranks == NULL)
        raddle_fail("no memory for a communicator");
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Comm_group(comm, &group);
    for (int rank = 0; rank < scope->size; rank++)
        own[rank] = rank;
    PMPI_Group_translate_ranks(group, scope->size, own, world, scope->world);
    for (int rank = 0; known && rank < scope->size; rank++) {
        known = scope->world[rank] != MPI_UNDEFINED;
        same &= scope->world[rank] == rank;
        if (known)
            scope->ranks[scope->world[rank]] = rank;
    }
    PMPI_Group_free(&group);
    PMPI_Group_free(&world);
    free(own);
    if (!known || same) {
        free(scope->world);
        free(scope->ranks);
        scope->world = scope->ranks = NULL;
    }
    return known;
}

static int crosses_the_network(const struct scope *scope)
{
    for (int rank = 1; rank < scope->size; rank++)
        if (nodes[world_rank(scope, rank)] != nodes[world_rank(scope, 0)])
            return 1;
    return 0;
}

static void discard(struct scope *scope)
{
    free(scope->world);
    free(scope->ranks);
    free(scope->last_sent);
    free(scope);
}

void raddle_let_go(struct scope *scope)
{
    if (--scope->uses == 0)
        discard(scope);
}

/* Its messages are ours, or may come to be. */
static int matters(const struct scope *scope)
{
    return scope->on_trial || !scope->plain;
}

void raddle_forget_scope(struct scope *scope)
{
    raddle_scopes -= agreed && matters(scope);
    raddle_turns -= scope->plain && scope->on_trial;
    scope->on_trial = 0;
    scope->comm = MPI_COMM_NULL;
    raddle_let_go(scope);
}

void raddle_agree(MPI_Comm comm)
{
    int inter = 0;
    if (!agreed || comm == MPI_COMM_NULL || PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter)
        return;
    struct known *known = raddle_find(comm);
    struct scope *scope = calloc(1, sizeof *scope);
    if (known == NULL || scope == NULL)
        raddle_fail("no memory for a communicator");
    *scope = (struct scope){.comm = comm, .uses = 1, .size = known->size};
    /* The conditions before the Allreduce have the same answer on all ranks of the communicator. */
    if (!translate(comm, scope) || (!force && !crosses_the_network(scope)) ||
        PMPI_Allreduce(&next_context, &scope->context, 1, MPI_UINT32_T, MPI_MAX, comm) != MPI_SUCCESS ||
        scope->context >= MOST_CONTEXTS) {
        discard(scope);
        return;
    }
    next_context = scope->context + 1;
    known->scope = scope;
    raddle_scopes++;
    scope->on_trial = !force;
    if (scope->on_trial)
        raddle_messages->begin_trial(scope->context);
}

void raddle_agree_world(void)
{
    enum raddle_plain_state why;
    uint64_t mine = ability(&why), node;
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!has_same(mine, rank) || mine == 0) {
        if (raddle_messages != NULL)
            raddle_messages->stay_plain(mine == 0 ? why : RADDLE_SETTINGS);
        return;
    }
    PMPI_Comm_size(MPI_COMM_WORLD, &world_size);
    node = raddle_messages->node();
    nodes = malloc((size_t)world_size * sizeof *nodes);
    if (nodes == NULL)
        raddle_fail("no memory for the places of ranks");
    raddle_must(PMPI_Allgather(&node, 1, MPI_UINT64_T, nodes, 1, MPI_UINT64_T, MPI_COMM_WORLD), "MPI_Allgather");
    int opened = raddle_messages->open(rank, world_size, nodes);
    force = (opened & RADDLE_FORCED) != 0;
    raddle_open_channel(world_size, raddle_tell_library);
    raddle_begin_rails();
    agreed = 1;
    raddle_awake += raddle_rails + ((opened & RADDLE_HANDS_ON) != 0);
    raddle_agree(MPI_COMM_WORLD);
    raddle_agree(MPI_COMM_SELF);
}

void raddle_end_messages(void)
{
    if (!agreed)
        return;
    raddle_close_channel();
    raddle_free_receives();
    agreed = 0;
    raddle_scopes = 0;
}
