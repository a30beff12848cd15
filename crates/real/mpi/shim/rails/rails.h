/* Large messages that are offered to rails. */
#ifndef RADDLE_RAILS_H
#define RADDLE_RAILS_H

#include "channel/channel.h"

/* 1: it was offered, and `request` completes when its buffer is free. */
int raddle_offer(const struct piece *piece, const struct raddle_outgoing *message, int mode, MPI_Request *request);
void *raddle_land(uint64_t receive, const struct raddle_envelope *message);
void raddle_landed(uint64_t receive);
void raddle_fetch_offered(uint64_t receive, const struct raddle_envelope *message, uint32_t key);
void raddle_send_offered(uint64_t offer, uint32_t key);
void raddle_offer_sent(uint64_t offer);
/* All ranks agree on a secret. */
void raddle_begin_rails(void);

#endif
