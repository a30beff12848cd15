/* Buffers of the program's. */
#include <string.h>

#include "channel/channel.h"

const struct raddle_type *raddle_last_type;

struct piece raddle_other_piece(const void *buf, int count, MPI_Datatype type)
{
    MPI_Count size = 0;
    if (type != MPI_DATATYPE_NULL)
        PMPI_Type_size_x(type, &size);
    uint64_t bytes = count > 0 && size > 0 ? (uint64_t)count * (uint64_t)size : 0;
    return (struct piece){.buf = (void *)buf, .count = count, .type = type, .bytes = bytes};
}

void raddle_hold_type(struct piece *piece)
{
    MPI_Datatype kept;
    /* Not MPI_Type_dup, which calls the program's attribute functions. */
    raddle_must(PMPI_Type_contiguous(1, piece->type, &kept), "MPI_Type_contiguous");
    raddle_must(PMPI_Type_commit(&kept), "MPI_Type_commit");
    piece->type = kept;
}

void raddle_store(const struct piece *piece, const void *bytes, size_t length)
{
    MPI_Count size = 0;
    int at = 0;
    if (length == 0)
        return;
    if (piece->direct) {
        memcpy(piece->buf, bytes, length);
        return;
    }
    PMPI_Type_size_x(piece->type, &size);
    if (length % (size_t)size == 0)
        raddle_must(PMPI_Unpack(bytes, (int)length, &at, piece->buf, (int)(length / (size_t)size), piece->type, raddle_shadow),
                    "MPI_Unpack");
    else /* Part of an element, which MPI_Unpack does not know. */
        raddle_must(PMPI_Sendrecv(bytes, (int)length, MPI_PACKED, 0, RADDLE_PIECE_TAG, piece->buf, piece->count, piece->type, 0,
                                  RADDLE_PIECE_TAG, raddle_alone, MPI_STATUS_IGNORE),
                    "MPI_Sendrecv");
}
