/* Two nodes in one process over two rails: messages of several lengths go there and back, with the header only. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "raddle_rails.h"

enum { LONGEST = 200000, MESSAGES = 40 };

static void check(int holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "%s\n", what);
        exit(1);
    }
}

static raddle_rails *open_node(uint32_t local, char *const ports[4]) {
    struct raddle_rails_options options = {.job = 3, .key = "sixteen bytes!!", .local = local, .peer = 1 - local};
    struct raddle_rail rails[2];
    char error[200] = "";
    for (int i = 0; i < 2; i++) {
        rails[i] = (struct raddle_rail){ports[2 * i + local], ports[2 * i + 1 - local], 10000000000u};
    }
    raddle_rails *node = raddle_rails_open(&options, rails, 2, error, sizeof error);
    if (node == NULL) {
        fprintf(stderr, "%s\n", error);
        exit(1);
    }
    return node;
}

static void refusals(raddle_rails *node) {
    struct raddle_rails_options options = {.job = 3};
    struct raddle_rail bad = {"nowhere", "10.0.0.1:5", 1};
    char error[30];
    uint32_t buffer;
    check(raddle_rails_open(&options, &bad, 1, error, sizeof error) == NULL, "a bad address is taken");
    check(strncmp(error, "\"nowhere\" is not an IPv4 addr", 29) == 0, error);
    check(raddle_rails_open(NULL, &bad, 1, NULL, 0) == NULL, "no options are taken");
    check(raddle_rails_provide(node, 77, 0) == RADDLE_RAILS_EINVALID, "a closed port takes buffers");
    check(raddle_rails_send(node, 0, 1, 12345, 1) == RADDLE_RAILS_EBUFFER, "an unknown buffer is sent");
    check(raddle_rails_alloc(node, 10, &buffer) != NULL, "no memory");
    check(raddle_rails_send(node, 0, 1, buffer, 11) == RADDLE_RAILS_EBUFFER, "a short buffer is sent");
    check(raddle_rails_free(node, buffer) == 0, "memory is kept");
    check(raddle_rails_free(node, buffer) == RADDLE_RAILS_EBUFFER, "memory is freed twice");
    check(raddle_rails_wait(NULL, 0) == RADDLE_RAILS_EINVALID, "NULL is waited for");
    check(strlen(raddle_rails_error(99)) > 0, "an error has no words");
}

int main(int argc, char *argv[]) {
    check(argc == 5, "four addresses are needed");
    raddle_rails *nodes[2] = {open_node(0, argv + 1), open_node(1, argv + 1)};
    unsigned char *memory[2];
    uint32_t sends, receives;
    refusals(nodes[0]);
    memory[0] = raddle_rails_alloc(nodes[0], LONGEST, &sends);
    memory[1] = raddle_rails_alloc(nodes[1], LONGEST, &receives);
    check(memory[0] != NULL && memory[1] != NULL, "no memory");
    check(raddle_rails_open_port(nodes[1], 5, LONGEST) == 0, "the port does not open");
    check(raddle_rails_provide(nodes[1], 5, receives) == 0, "the buffer is not taken");
    int sent = 0, received = 0, lent = 0;
    while (sent < MESSAGES || received < MESSAGES) {
        if (!lent && sent < MESSAGES) {
            for (int i = 0; i < LONGEST; i++) {
                memory[0][i] = (unsigned char)(i * 13 + sent);
            }
            check(raddle_rails_send(nodes[0], 9, 5, sends, sent * 4999) == 0, "a message is not taken");
            lent = 1;
        }
        for (int n = 0; n < 2; n++) {
            struct raddle_rails_event event;
            check(raddle_rails_wait(nodes[n], 0) == 0, "the system refuses");
            while (raddle_rails_poll(nodes[n], &event) == 1) {
                if (event.kind == RADDLE_RAILS_SENT) {
                    check(event.buffer == sends, "another buffer comes back");
                    lent = 0;
                    sent++;
                } else if (event.kind == RADDLE_RAILS_RECEIVED) {
                    check(event.length == (uint64_t)received * 4999, "a message has another length");
                    check(event.source_port == 9 && event.target_port == 5, "other ports");
                    for (uint64_t i = 0; i < event.length; i++) {
                        check(memory[1][i] == (unsigned char)(i * 13 + received), "a byte is wrong");
                    }
                    received++;
                    check(raddle_rails_provide(nodes[1], 5, event.buffer) == 0, "the buffer is not taken");
                } else {
                    check(event.kind <= RADDLE_RAILS_RAIL_DOWN, "it fails");
                }
            }
        }
    }
    raddle_rails_close(nodes[0]);
    raddle_rails_close(nodes[1]);
    raddle_rails_close(NULL);
    return 0;
}
