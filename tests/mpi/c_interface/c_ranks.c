/* Ring 3: npumesh.h by processes, in C.
 *
 *   c_ranks collectives   every collective on memory of the program and on device memory
 *   c_ranks mismatch      the ranks ask for different counts; all read the same text
 *   c_ranks fail          the last rank says that it failed; the others do not wait for it
 *   c_ranks graph FILE    runs the graph of FILE, an allreduce of int32[4], twice
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "npumesh/npumesh.h"

enum { COUNT = 1000, MOST_RANKS = 8 };

static int failures = 0;

static void expect(int holds, const char* what) {
  if (holds) return;
  ++failures;
  fprintf(stderr, "not so: %s (%s)\n", what, npumesh_last_error());
}

/* Two buffers of a call: memory of the program, or of the device. */
struct buffers {
  int32_t* send;
  int32_t* recv;
};

static int32_t fill(int rank, int i) {
  return (rank + 1) * 1000 + i % 7;
}

static void fill_send(const struct buffers* b, int rank, int count) {
  int i;
  for (i = 0; i < count; ++i) b->send[i] = fill(rank, i);
  memset(b->recv, -1, sizeof(int32_t) * COUNT * MOST_RANKS);
}

static void check_reductions(npumesh_group* group, const struct buffers* b, int rank, int size) {
  int i, r, ok = 1;
  fill_send(b, rank, COUNT);
  expect(npumesh_all_reduce(group, b->send, b->recv, COUNT, NPUMESH_INT32, NPUMESH_SUM) == 0,
         "all_reduce");
  for (i = 0; i < COUNT; ++i) {
    int32_t sum = 0;
    for (r = 0; r < size; ++r) sum += fill(r, i);
    ok = ok && b->recv[i] == sum;
  }
  expect(ok, "sums of all_reduce");

  fill_send(b, rank, COUNT);
  expect(npumesh_all_reduce(group, b->send, b->send, COUNT, NPUMESH_INT32, NPUMESH_MAX) == 0,
         "all_reduce in place");
  for (i = 0, ok = 1; i < COUNT; ++i) ok = ok && b->send[i] == fill(size - 1, i);
  expect(ok, "maxima of all_reduce in place");

  fill_send(b, rank, COUNT);
  expect(npumesh_reduce_to(group, b->send, rank == 1 ? b->recv : NULL, COUNT, NPUMESH_INT32,
                           NPUMESH_MIN, 1) == 0,
         "reduce_to");
  for (i = 0, ok = 1; i < COUNT && rank == 1; ++i) ok = ok && b->recv[i] == fill(0, i);
  expect(ok, "minima of reduce_to");

  fill_send(b, rank, COUNT * size);
  expect(npumesh_reduce_scatter(group, b->send, b->recv, COUNT, NPUMESH_INT32, NPUMESH_SUM) == 0,
         "reduce_scatter");
  for (i = 0, ok = 1; i < COUNT; ++i) {
    int32_t sum = 0;
    for (r = 0; r < size; ++r) sum += fill(r, rank * COUNT + i);
    ok = ok && b->recv[i] == sum;
  }
  expect(ok, "sums of reduce_scatter");
}

static void check_copies(npumesh_group* group, const struct buffers* b, int rank, int size) {
  uint64_t send_counts[MOST_RANKS], recv_counts[MOST_RANKS];
  int i, r, at, ok = 1;
  fill_send(b, rank, COUNT);
  expect(npumesh_all_gather(group, b->send, b->recv, COUNT, NPUMESH_INT32) == 0, "all_gather");
  for (i = 0; i < COUNT * size; ++i) ok = ok && b->recv[i] == fill(i / COUNT, i % COUNT);
  expect(ok, "blocks of all_gather");

  fill_send(b, rank, COUNT);
  expect(npumesh_broadcast(group, b->send, COUNT, NPUMESH_INT32, size - 1) == 0, "broadcast");
  for (i = 0, ok = 1; i < COUNT; ++i) ok = ok && b->send[i] == fill(size - 1, i);
  expect(ok, "broadcast from the last");

  fill_send(b, rank, COUNT * size);
  expect(npumesh_all_to_all(group, b->send, b->recv, COUNT, NPUMESH_INT32) == 0, "all_to_all");
  for (i = 0, ok = 1; i < COUNT * size; ++i) {
    ok = ok && b->recv[i] == fill(i / COUNT, rank * COUNT + i % COUNT);
  }
  expect(ok, "blocks of all_to_all");

  /* Rank r sends r + k + 1 elements to rank k. */
  fill_send(b, rank, COUNT);
  for (r = 0; r < size; ++r) send_counts[r] = recv_counts[r] = (uint64_t)(rank + r + 1);
  expect(
      npumesh_all_to_all_v(group, b->send, send_counts, b->recv, recv_counts, NPUMESH_INT32) == 0,
      "all_to_all_v");
  for (r = 0, at = 0, ok = 1; r < size; ++r) {
    int before = 0, k;
    for (k = 0; k < rank; ++k) before += r + k + 1;
    for (i = 0; i < rank + r + 1; ++i) ok = ok && b->recv[at++] == fill(r, before + i);
  }
  expect(ok, "blocks of all_to_all_v");
}

static void check_messages(npumesh_group* group, const struct buffers* b, int rank) {
  int i, ok = 1;
  if (rank > 1) return;
  fill_send(b, rank, COUNT);
  if (rank == 0) {
    expect(npumesh_send(group, b->send, COUNT, NPUMESH_INT32, 1) == 0, "send");
    expect(npumesh_recv(group, b->recv, 3, NPUMESH_INT32, 1) == 0, "recv of the answer");
  } else {
    expect(npumesh_recv(group, b->recv, COUNT, NPUMESH_INT32, 0) == 0, "recv");
    for (i = 0; i < COUNT; ++i) ok = ok && b->recv[i] == fill(0, i);
    expect(ok, "what was received");
    expect(npumesh_send(group, b->send, 3, NPUMESH_INT32, 0) == 0, "send of the answer");
  }
}

static void check_all(npumesh_group* group, const struct buffers* b) {
  int32_t rank = -1, size = -1;
  expect(npumesh_get_group(group, &rank, &size) == 0, "get_group");
  check_reductions(group, b, rank, size);
  check_copies(group, b, rank, size);
  check_messages(group, b, rank);
  expect(npumesh_barrier(group) == 0, "barrier");
}

static void check_refusals(npumesh_group* group, int32_t* data) {
  expect(npumesh_all_reduce(group, data, data, 4, 5, NPUMESH_SUM) == NPUMESH_INVALID_ARGUMENT,
         "a dtype that there is not");
  expect(npumesh_all_reduce(group, NULL, data, 4, NPUMESH_INT32, NPUMESH_SUM) ==
             NPUMESH_INVALID_ARGUMENT,
         "no memory");
  expect(npumesh_all_reduce(group, data, data, 4, NPUMESH_INT32, (npumesh_reduce)9) ==
             NPUMESH_INVALID_ARGUMENT,
         "a reduction that there is not");
  expect(npumesh_all_gather(group, data, data, (uint64_t)1 << 63, NPUMESH_INT32) ==
             NPUMESH_INVALID_ARGUMENT,
         "more bytes than there can be");
}

static void check_collectives(npumesh_world* world, const npumesh_world_info* info) {
  const size_t bytes = sizeof(int32_t) * COUNT * MOST_RANKS;
  struct buffers host, device;
  void *send = NULL, *recv = NULL;
  npumesh_group *all = NULL, *backwards = NULL;
  int32_t ranks[MOST_RANKS], i;
  host.send = malloc(bytes);
  host.recv = malloc(bytes);
  expect(npumesh_alloc(world, bytes, &send) == 0 && npumesh_alloc(world, bytes, &recv) == 0,
         "alloc");
  device.send = send;
  device.recv = recv;
  for (i = 0; i < info->size; ++i) ranks[i] = info->size - 1 - i;
  expect(npumesh_make_group(world, NULL, 0, "all", &all) == 0, "make_group");
  expect(npumesh_make_group(world, ranks, (size_t)info->size, "backwards", &backwards) == 0,
         "make_group of a list");
  if (failures == 0) {
    check_refusals(all, host.send);
    check_all(all, &host);
    check_all(all, &device);
    check_all(backwards, &host);
  }
  expect(npumesh_close_group(all) == 0 && npumesh_close_group(backwards) == 0, "close_group");
  free(host.send);
  free(host.recv);
}

static void check_mismatch(npumesh_world* world, const npumesh_world_info* info) {
  int32_t data[8] = {0};
  npumesh_group* group = NULL;
  expect(npumesh_make_group(world, NULL, 0, "tp", &group) == 0, "make_group");
  expect(npumesh_all_reduce(group, data, data, info->rank == 0 ? 3 : 4, NPUMESH_INT32,
                            NPUMESH_SUM) == NPUMESH_MISMATCH,
         "counts differ");
  expect(strstr(npumesh_last_error(), "count") != NULL, "the text says what differs");
  expect(npumesh_all_reduce(group, data, data, 4, NPUMESH_INT32, NPUMESH_SUM) == NPUMESH_MISMATCH,
         "a group that has failed stays failed");
  npumesh_close_group(group);
}

static void check_fail(npumesh_world* world, const npumesh_world_info* info) {
  int32_t data[8] = {0};
  npumesh_group* group = NULL;
  expect(npumesh_make_group(world, NULL, 0, "tp", &group) == 0, "make_group");
  if (info->rank == info->size - 1) {
    expect(npumesh_fail(world, "the reader has no more data") == 0, "fail");
  } else {
    expect(
        npumesh_all_reduce(group, data, data, 4, NPUMESH_INT32, NPUMESH_SUM) == NPUMESH_PEER_LOST,
        "the others do not wait");
    expect(strstr(npumesh_last_error(), "the reader has no more data") != NULL, "and read why");
  }
  npumesh_close_group(group);
}

/* Memory of the program is copied because the other ranks read it, device memory is not. */
static void check_graph(npumesh_world* world, const npumesh_world_info* info, const char* path) {
  npumesh_session* session = NULL;
  npumesh_session_stats stats;
  const int64_t dims[1] = {4};
  int32_t in[4], out[4], i;
  void *device_in = NULL, *device_out = NULL;
  npumesh_tensor x = {in, sizeof in, dims, 1, NPUMESH_INT32, 0};
  npumesh_tensor y = {out, sizeof out, NULL, 0, NPUMESH_INT32, 0};
  const int32_t sum = info->size * (info->size + 1) / 2;
  for (i = 0; i < 4; ++i) in[i] = (info->rank + 1) * (i + 1);
  expect(npumesh_load_file(world, path, NULL, 0, &session) == 0, "load_file");
  if (failures != 0) return;
  expect(npumesh_prepare(session, &x, 1) == 0, "prepare");
  expect(npumesh_run(session, &x, 1, &y, 1) == 0, "run");
  for (i = 0; i < 4; ++i) expect(out[i] == sum * (i + 1), "the sum");
  expect(npumesh_get_stats(session, &stats, sizeof stats) == 0, "stats");
  expect(stats.input_bytes_copied == 16 && stats.output_bytes_copied == 16, "one copy each");

  expect(npumesh_alloc(world, 16, &device_in) == 0 && npumesh_alloc(world, 16, &device_out) == 0,
         "alloc");
  memcpy(device_in, in, sizeof in);
  x.data = device_in;
  y.data = device_out;
  expect(npumesh_run(session, &x, 1, &y, 1) == 0, "run in device memory");
  for (i = 0; i < 4; ++i) expect(((int32_t*)device_out)[i] == sum * (i + 1), "the sum there");
  expect(npumesh_get_stats(session, &stats, sizeof stats) == 0, "stats");
  expect(stats.input_bytes_copied == 16 && stats.output_bytes_copied == 16, "no further copy");
  expect(npumesh_close(session) == 0, "close");
}

int main(int argc, char** argv) {
  npumesh_world* world = NULL;
  npumesh_world_info info;
  const char* what = argc > 1 ? argv[1] : "";
  if (npumesh_init(NULL, 0, &world) != NPUMESH_OK) {
    fprintf(stderr, "%s\n", npumesh_last_error());
    return 1;
  }
  expect(npumesh_get_world_info(world, &info) == 0, "get_world_info");
  if (strcmp(what, "collectives") == 0) {
    check_collectives(world, &info);
  } else if (strcmp(what, "mismatch") == 0) {
    check_mismatch(world, &info);
  } else if (strcmp(what, "fail") == 0) {
    check_fail(world, &info);
  } else if (strcmp(what, "graph") == 0 && argc > 2) {
    check_graph(world, &info, argv[2]);
  } else {
    expect(0, "collectives, mismatch, fail or graph FILE");
  }
  if (npumesh_finalize(world) != NPUMESH_OK && strcmp(what, "fail") != 0) expect(0, "finalize");
  return failures == 0 ? 0 : 1;
}
