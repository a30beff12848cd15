/* The core's tables. */
#include "library/library.h"

const struct raddle_process *raddle_process;
const struct raddle_collectives *raddle_collectives;
const struct raddle_recorder *raddle_recorder;
const struct raddle_messages *raddle_messages;
