/* The C interface: runs a model whose shapes are known, on ones, and prints what comes out.
 *
 *   c_add add.air
 *   npumesh launch -n 2 -- ./c_add model.air      (or mpirun)
 */
#include <stdio.h>
#include <stdlib.h>

#include "npumesh/npumesh.h"

enum { MOST_PORTS = 16 };

/* A tensor of float ones for an input; 0: the input is of another type, or has open dimensions. */
static int fill_input(const npumesh_port* port, npumesh_tensor* tensor) {
  float* values;
  uint64_t i;
  if (port->dtype != NPUMESH_FLOAT32 || port->bytes == 0) return 0;
  values = malloc((size_t)port->bytes);
  if (values == NULL) return 0;
  for (i = 0; i < port->bytes / sizeof *values; ++i) values[i] = 1;
  tensor->data = values;
  tensor->bytes = port->bytes;
  tensor->dims = port->dims;
  tensor->rank = port->rank;
  tensor->dtype = port->dtype;
  tensor->flags = NPUMESH_READ_ONLY;
  return 1;
}

static void print_output(const npumesh_tensor* tensor, size_t position, int rank) {
  uint64_t i;
  printf("rank %d output %d %s:", rank, (int)position, npumesh_dtype_name(tensor->dtype));
  for (i = 0; tensor->dtype == NPUMESH_FLOAT32 && i < tensor->bytes / sizeof(float); ++i) {
    printf(" %g", ((const float*)tensor->data)[i]);
  }
  printf("\n");
}

static npumesh_code run_session(npumesh_session* session, int rank) {
  npumesh_tensor in[MOST_PORTS] = {{0}};
  npumesh_tensor out[MOST_PORTS] = {{0}};
  npumesh_port port;
  size_t inputs, outputs, i;
  npumesh_code code = npumesh_count_ports(session, &inputs, &outputs);
  if (code != NPUMESH_OK) return code;
  if (inputs > MOST_PORTS || outputs > MOST_PORTS) return NPUMESH_UNSUPPORTED;
  for (i = 0; i < inputs && code == NPUMESH_OK; ++i) {
    code = npumesh_get_input(session, i, &port);
    if (code == NPUMESH_OK && !fill_input(&port, &in[i])) {
      fprintf(stderr, "input %s: this example only fills float32 of known shape\n", port.name);
      code = NPUMESH_UNSUPPORTED;
    }
  }
  for (i = 0; i < outputs; ++i) out[i].dtype = NPUMESH_UNDEFINED; /* any; memory is given to us */
  if (code == NPUMESH_OK) code = npumesh_run(session, in, inputs, out, outputs);
  for (i = 0; i < outputs && code == NPUMESH_OK; ++i) {
    print_output(&out[i], i, rank);
    npumesh_release(out[i].data);
  }
  for (i = 0; i < inputs; ++i) free(in[i].data);
  return code;
}

static npumesh_code run_model(npumesh_world* world, const char* path) {
  npumesh_world_info info;
  npumesh_session* session = NULL;
  npumesh_code code = npumesh_get_world_info(world, &info);
  if (code == NPUMESH_OK) code = npumesh_load_file(world, path, NULL, 0, &session);
  if (code == NPUMESH_OK) code = run_session(session, info.rank);
  if (code != NPUMESH_OK) {
    fprintf(stderr, "rank %d: %s\n", info.rank, npumesh_last_error());
    npumesh_fail(world, npumesh_last_error()); /* the others need not wait for this rank */
  }
  npumesh_close(session);
  return code;
}

int main(int argc, char** argv) {
  npumesh_world* world = NULL;
  npumesh_code code;
  if (argc != 2) {
    fprintf(stderr, "usage: c_add MODEL.air\n");
    return 2;
  }
  code = npumesh_init(NULL, 0, &world);
  if (code != NPUMESH_OK) {
    fprintf(stderr, "%s\n", npumesh_last_error());
    return npumesh_exit_code(code);
  }
  code = run_model(world, argv[1]);
  if (npumesh_finalize(world) != NPUMESH_OK) fprintf(stderr, "%s\n", npumesh_last_error());
  return npumesh_exit_code(code);
}
