/* Requests to a subnet manager and to switches, many at a time; under umad2sim or on real hardware.
 *
 * Lines on standard input:  J MGID PORTGUID [MTU RATE]   join as a full member (by proxy for any port)
 *                           L MGID PORTGUID   leave
 *                           M LID BLOCK POSITION   get a block of a multicast table
 *                           F LID BLOCK       get a block of a linear forwarding table
 * (MGID: 32 hexadecimal digits; GUIDs hexadecimal; MTU and RATE with their selectors as in the record, hexadecimal, 0:
 * not said; others decimal). For each line, in order of arrival:
 *   "NUMBER STATUS VALUE": the line's number from 0, the MAD's status (hexadecimal; ffff: no answer), the block or the
 *   group's MLID, MTU and rate (4, 2 and 2 digits) in hexadecimal digits.
 *
 * usage: sa_client [REQUESTS UNDER WAY]
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <infiniband/umad.h>

enum { MAD = 256, TRIES = 5, MAX_WINDOW = 1024, TIMEOUT_MS = 2000 };

struct request {
	unsigned char mad[MAD];
	long number;
	int lid, agent, tries, busy;
	uint32_t qkey;
	double sent;
	char kind;
};

static struct request slots[MAX_WINDOW];
static int port, sa_agent, smi_agent, sm_lid;
static void *umad;

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec * 1e-9;
}

static void put(unsigned char *at, uint64_t value, int bytes)
{
	while (bytes--) {
		at[bytes] = (unsigned char)value;
		value >>= 8;
	}
}

static void send_request(int slot)
{
	struct request *request = &slots[slot];

	memset(umad, 0, umad_size() + MAD);
	memcpy(umad_get_mad(umad), request->mad, MAD);
	umad_set_addr(umad, request->lid, request->qkey ? 1 : 0, 0, request->qkey);
	if (umad_send(port, request->agent, umad, MAD, 0, 0) < 0) {
		fprintf(stderr, "sa_client: umad_send: %s\n", strerror(errno));
		exit(1);
	}
	request->sent = now();
	request->tries++;
}

static int parse(const char *line, struct request *request, int slot)
{
	unsigned char *mad = request->mad;
	char mgid[33];
	unsigned long long guid;
	unsigned mtu = 0, rate = 0;
	int lid, block, position = 0, byte;

	memset(mad, 0, MAD);
	request->kind = line[0];
	mad[0] = 1;
	put(mad + 12, (uint64_t)(uint32_t)request->number << 10 | (unsigned)slot, 4);
	if (line[0] == 'J' || line[0] == 'L') {
		if (sscanf(line + 1, " %32[0-9a-fA-F] %llx %x %x", mgid, &guid, &mtu, &rate) < 2 || strlen(mgid) != 32)
			return -1;
		mad[1] = 3;				/* SubnAdm */
		mad[2] = 2;
		mad[3] = line[0] == 'J' ? 0x02 : 0x15;	/* Set, Delete */
		put(mad + 16, 0x38, 2);			/* MCMemberRecord */
		/* MGID, PortGID, QKey, TClass, PKey, SL, FlowLabel, JoinState; MTU and rate with their selectors */
		put(mad + 48, (line[0] == 'J' ? 0x130c7 : 0x10003) | (mtu ? 0x30 : 0) | (rate ? 0x300 : 0), 8);
		for (byte = 0; byte < 16; byte++) {
			unsigned value;

			sscanf(mgid + 2 * byte, "%2x", &value);
			mad[56 + byte] = (unsigned char)value;
		}
		put(mad + 72, 0xfe80000000000000ULL, 8);
		put(mad + 80, guid, 8);
		put(mad + 88, 0x80010000, 4);		/* QKey */
		put(mad + 94, mtu, 1);
		put(mad + 96, 0xffff, 2);		/* PKey */
		put(mad + 98, rate, 1);
		mad[104] = 0x01;			/* full member */
		request->lid = sm_lid;
		request->agent = sa_agent;
		request->qkey = 0x80010000;
		return 0;
	}
	if (line[0] == 'M' ? sscanf(line + 1, "%d %d %d", &lid, &block, &position) != 3
			   : line[0] != 'F' || sscanf(line + 1, "%d %d", &lid, &block) != 2)
		return -1;
	mad[1] = 1;	/* SubnMgt, LID routed */
	mad[2] = 1;
	mad[3] = 0x01;	/* Get */
	put(mad + 16, line[0] == 'M' ? 0x1b : 0x19, 2);
	put(mad + 20, (uint32_t)block | (uint32_t)position << 28, 4);
	request->lid = lid;
	request->agent = smi_agent;
	request->qkey = 0;
	return 0;
}

static void answer(struct request *request, unsigned status, const unsigned char *mad)
{
	int byte;

	printf("%ld %x ", request->number, status);
	if (!mad)
		printf("-");
	else if (request->kind == 'J' || request->kind == 'L')
		printf("%02x%02x%02x%02x", mad[92], mad[93], mad[94], mad[98]);
	else
		for (byte = 64; byte < 128; byte++)
			printf("%02x", mad[byte]);
	printf("\n");
	request->busy = 0;
}

int main(int argc, char **argv)
{
	int window = argc > 1 ? atoi(argv[1]) : 64, under_way = 0, slot, more = 1;
	char line[256];
	long number = 0;
	umad_port_t attributes;

	if (window < 1 || window > MAX_WINDOW || umad_init() < 0 || (port = umad_open_port(NULL, 0)) < 0 ||
	    umad_get_port(NULL, 0, &attributes) < 0) {
		fprintf(stderr, "sa_client: no InfiniBand port (or a window not in 1..%d)\n", MAX_WINDOW);
		return 1;
	}
	sm_lid = (int)attributes.sm_lid;
	sa_agent = umad_register(port, 3, 2, 0, NULL);
	smi_agent = umad_register(port, 1, 1, 0, NULL);
	umad = umad_alloc(1, umad_size() + MAD);
	if (sa_agent < 0 || smi_agent < 0 || !umad) {
		fprintf(stderr, "sa_client: cannot register with the port\n");
		return 1;
	}
	while (more || under_way) {
		int length = MAD, got;
		const unsigned char *mad;
		struct pollfd wait = { umad_get_fd(port), POLLIN, 0 };

		for (slot = 0; more && slot < window; slot++) {
			if (slots[slot].busy)
				continue;
			if (!fgets(line, sizeof(line), stdin)) {
				more = 0;
				break;
			}
			slots[slot].number = number++;
			slots[slot].tries = 0;
			if (parse(line, &slots[slot], slot) < 0) {
				fprintf(stderr, "sa_client: line %ld: %s", number, line);
				return 1;
			}
			slots[slot].busy = 1;
			under_way++;
			send_request(slot);
		}
		if (poll(&wait, 1, 100) > 0 && (got = umad_recv(port, umad, &length, 0)) >= 0) {
			uint32_t tid;

			mad = umad_get_mad(umad);
			tid = (uint32_t)mad[12] << 24 | mad[13] << 16 | mad[14] << 8 | mad[15];
			slot = tid & (MAX_WINDOW - 1);
			if (slots[slot].busy && (tid >> 10) == ((uint32_t)slots[slot].number & 0x3fffff) &&
			    (mad[3] & 0x80)) {
				answer(&slots[slot], mad[4] << 8 | mad[5], mad);
				under_way--;
			}
			continue;
		}
		for (slot = 0; slot < window; slot++)
			if (slots[slot].busy && now() - slots[slot].sent > TIMEOUT_MS * 1e-3) {
				if (slots[slot].tries < TRIES)
					send_request(slot);
				else {
					answer(&slots[slot], 0xffff, NULL);
					under_way--;
				}
			}
	}
	return 0;
}
