/* Handles of the program's, and what we know of them: a table by the handle's bits, at most half full. */
#include <stdlib.h>

#include "channel/channel.h"

enum { LEAST_ROOM = 64 };

struct handle_entry {
    uintptr_t handle;
    void *what; /* NULL: the place is free */
};

/* Where a handle belongs if that place is free. */
static size_t home_of(const struct handles *handles, uintptr_t handle)
{
    return (size_t)((uint64_t)handle * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (handles->room - 1);
}

/* The place of this handle, or the free one where it would be. */
static size_t find(const struct handles *handles, uintptr_t handle)
{
    size_t at = home_of(handles, handle);
    while (handles->entries[at].what != NULL && handles->entries[at].handle != handle)
        at = (at + 1) & (handles->room - 1);
    return at;
}

static void grow(struct handles *handles)
{
    struct handles old = *handles;
    handles->room = old.room == 0 ? LEAST_ROOM : 2 * old.room;
    handles->entries = calloc(handles->room, sizeof *handles->entries);
    if (handles->entries == NULL)
        raddle_fail("no memory for a request");
    for (size_t at = 0; at < old.room; at++)
        if (old.entries[at].what != NULL)
            handles->entries[find(handles, old.entries[at].handle)] = old.entries[at];
    free(old.entries);
}

void raddle_put(struct handles *handles, uintptr_t handle, void *what)
{
    if (2 * handles->count >= handles->room)
        grow(handles);
    struct handle_entry *entry = &handles->entries[find(handles, handle)];
    handles->count += entry->what == NULL;
    *entry = (struct handle_entry){.handle = handle, .what = what};
}

void *raddle_get(const struct handles *handles, uintptr_t handle)
{
    return handles->count == 0 ? NULL : handles->entries[find(handles, handle)].what;
}

void *raddle_take(struct handles *handles, uintptr_t handle)
{
    if (handles->count == 0)
        return NULL;
    size_t free_place = find(handles, handle), last = handles->room - 1;
    void *what = handles->entries[free_place].what;
    if (what == NULL)
        return NULL;
    handles->count--;
    handles->entries[free_place].what = NULL;
    /* Those behind it stay where a search from their homes finds them. */
    for (size_t at = (free_place + 1) & last; handles->entries[at].what != NULL; at = (at + 1) & last) {
        size_t home = home_of(handles, handles->entries[at].handle);
        if (((at - home) & last) < ((at - free_place) & last))
            continue;
        handles->entries[free_place] = handles->entries[at];
        handles->entries[at].what = NULL;
        free_place = at;
    }
    return what;
}
