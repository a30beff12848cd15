/* Messages over several rails: a node's end of a connection to one other node (docs/concepts/rails.md).
 *
 * Memory is registered once for all rails, lent with a send or as a receive buffer, and given back by an event. While it is
 * lent, a send buffer must not be changed and a receive buffer not be looked at. Nothing waits but raddle_rails_wait(), and
 * nothing moves but inside raddle_rails_wait(): call it often, also while only receiving. A node belongs to one thread.
 *
 * Functions return 0 or a positive error (RADDLE_RAILS_E...); raddle_rails_error() gives its words. */
#ifndef RADDLE_RAILS_H
#define RADDLE_RAILS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    RADDLE_RAILS_EINVALID = 1,  /* a pointer is null, a text or number makes no sense, or the port is not open */
    RADDLE_RAILS_EBUFFER = 2,   /* the buffer is lent, unknown or too short */
    RADDLE_RAILS_EFULL = 3,     /* no send token or port is left: wait for events */
    RADDLE_RAILS_ELENGTH = 4,   /* longer than the target port takes */
    RADDLE_RAILS_EFAILED = 5,   /* the connection has failed */
    RADDLE_RAILS_ESYSTEM = 6,   /* the system refuses something */
    RADDLE_RAILS_EINTERNAL = 7  /* an error in this library; the node is not usable any more */
};

enum raddle_rails_kind {
    RADDLE_RAILS_ESTABLISHED = 1, /* both nodes know each other */
    RADDLE_RAILS_RAIL_UP = 2,     /* rail */
    RADDLE_RAILS_RAIL_DOWN = 3,   /* rail; what it had is sent on the others */
    RADDLE_RAILS_SENT = 4,        /* buffer is yours again: its message has arrived as a whole */
    RADDLE_RAILS_SEND_FAILED = 5, /* buffer is yours again, its message did not arrive */
    RADDLE_RAILS_RECEIVED = 6,    /* buffer has a message: length, source_port, target_port */
    RADDLE_RAILS_RETURNED = 7,    /* buffer is yours again without a message */
    RADDLE_RAILS_FAILED = 8       /* the connection is over; nothing comes after this */
};

struct raddle_rail {
    const char *local;          /* "10.0.1.1:7000": this node's address on the rail */
    const char *peer;           /* the other node's */
    uint64_t bits_per_second;   /* rate of the link; an upper bound is enough */
};

struct raddle_rails_options {
    uint32_t job;               /* the same on both nodes */
    uint8_t key[16];            /* secret of the job, the same on both nodes */
    uint32_t local;             /* number of this node in the job */
    uint32_t peer;              /* number of the other one */
    uint16_t mtu;               /* bytes of an IPv4 packet on all rails, 0: 1500 */
    uint16_t heartbeat_ms;      /* 1 to 50, 0: 20. A rail that is silent for three is down */
    uint32_t give_up_ms;        /* the connection fails when no rail works for so long, 0: 10000 */
    uint32_t send_queue;        /* messages on their way at once, 0: 256 */
};

struct raddle_rails_event {
    uint32_t kind;              /* enum raddle_rails_kind */
    uint32_t buffer;
    uint32_t rail;
    uint16_t source_port;
    uint16_t target_port;
    uint64_t length;
};

typedef struct raddle_rails raddle_rails;

/* Opens a node over 1 to 8 rails, named in the same order on both nodes; NULL on error, with its words in `error`. */
raddle_rails *raddle_rails_open(const struct raddle_rails_options *options, const struct raddle_rail *rails,
                                size_t count, char *error, size_t error_size);
/* Closes it and frees its memory. The other node finds out after its give_up_ms. */
void raddle_rails_close(raddle_rails *node);

/* Registers zeroed memory; gives its address, which stays the same, and its number. NULL where there is none. */
void *raddle_rails_alloc(raddle_rails *node, size_t bytes, uint32_t *buffer);
/* Frees memory that is not lent. */
int raddle_rails_free(raddle_rails *node, uint32_t buffer);

/* Opens a port for messages of up to `longest` bytes. */
int raddle_rails_open_port(raddle_rails *node, uint16_t port, uint64_t longest);
/* Lends a buffer for one message to an open port; it has room for the longest. */
int raddle_rails_provide(raddle_rails *node, uint16_t port, uint32_t buffer);
/* Sends the first `length` bytes of a buffer. Messages of one source port to one target port arrive in order. */
int raddle_rails_send(raddle_rails *node, uint16_t source_port, uint16_t target_port, uint32_t buffer,
                      uint64_t length);

/* Moves packets; sleeps until something comes or is due if nothing has come for `spin_us`. */
int raddle_rails_wait(raddle_rails *node, uint32_t spin_us);
/* The oldest event; 1 if there was one, 0 if not, a negative error. To be called until it gives 0: then what came is
 * acknowledged, together with what was sent meanwhile. */
int raddle_rails_poll(raddle_rails *node, struct raddle_rails_event *event);

/* Words for an error; never NULL. */
const char *raddle_rails_error(int error);

#ifdef __cplusplus
}
#endif
#endif
