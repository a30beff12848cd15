/* Handles of the program's, and what we know of them: chains by the handle's bits. */
#include <stdlib.h>

#include "matching.h"

enum { BUCKETS = 1024 };

struct handle_entry {
    uintptr_t handle;
    void *what;
    struct handle_entry *next;
};

static size_t bucket_of(uintptr_t handle)
{
    return (size_t)((uint64_t)handle * UINT64_C(0x9e3779b97f4a7c15) >> 54) % BUCKETS;
}

/* Where the entry of this handle is linked, or would be. */
static struct handle_entry **find(const struct handles *handles, uintptr_t handle)
{
    struct handle_entry **at = &handles->buckets[bucket_of(handle)];
    while (*at != NULL && (*at)->handle != handle)
        at = &(*at)->next;
    return at;
}

void raddle_put(struct handles *handles, uintptr_t handle, void *what)
{
    if (handles->buckets == NULL)
        handles->buckets = calloc(BUCKETS, sizeof *handles->buckets);
    struct handle_entry *entry = malloc(sizeof *entry);
    if (handles->buckets == NULL || entry == NULL)
        raddle_fail("no memory for a request");
    struct handle_entry **first = &handles->buckets[bucket_of(handle)];
    *entry = (struct handle_entry){.handle = handle, .what = what, .next = *first};
    *first = entry;
}

void *raddle_get(const struct handles *handles, uintptr_t handle)
{
    if (handles->buckets == NULL)
        return NULL;
    struct handle_entry *entry = *find(handles, handle);
    return entry == NULL ? NULL : entry->what;
}

void *raddle_take(struct handles *handles, uintptr_t handle)
{
    if (handles->buckets == NULL)
        return NULL;
    struct handle_entry **at = find(handles, handle), *entry = *at;
    if (entry == NULL)
        return NULL;
    void *what = entry->what;
    *at = entry->next;
    free(entry);
    return what;
}
