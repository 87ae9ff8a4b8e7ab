/* npumesh.h: run Ascend graphs and collectives on simulated NPUs, from C and from every language
 * that calls C. Installed with libnpumesh.so and npumesh.pc; docs/c_api.md is the guide.
 *
 *   npumesh_world* world;
 *   npumesh_session* session;
 *   int64_t dims[] = {2, 2};
 *   float x[4] = {1, 2, 3, 4}, y[4];
 *   npumesh_tensor in = {x, sizeof x, dims, 2, NPUMESH_FLOAT32, 0};
 *   npumesh_tensor out = {y, sizeof y, NULL, 0, NPUMESH_FLOAT32, 0};
 *   if (npumesh_init(NULL, 0, &world) != NPUMESH_OK ||
 *       npumesh_load_file(world, "model.air", NULL, 0, &session) != NPUMESH_OK ||
 *       npumesh_run(session, &in, 1, &out, 1) != NPUMESH_OK)
 *     fprintf(stderr, "%s\n", npumesh_last_error());
 *
 * Errors. A function that can fail returns an npumesh_code; npumesh_last_error() has the text that
 * belongs to the last failure on this thread: what, where, expected and seen, what to do. It is one
 * line; where a graph has several errors, one line for each, indented by two blanks, follows the
 * first. After a failure out-parameters hold what they held before. No function ends the process,
 * prints, or throws; a warning goes to the log (docs/logging.md).
 *
 * Ownership. Texts that a function returns or writes belong to the library; how long they stay is
 * said at each. Tensors, options and texts that a caller passes are read during the call only,
 * except where a comment says that memory has to stay.
 *
 * Threads. A world, its sessions and its groups may be used from every thread, not only from the
 * one that made them. Calls on one session, or on one group, come one at a time. Sessions of a
 * world take turns: a second run waits until the first is over. Groups do not wait for sessions or
 * for each other. npumesh_init, npumesh_finalize and the functions that make or close a session or
 * a group come one at a time for a world. Functions without a world, session or group may be called
 * at any time.
 *
 * Ranks. One process is one rank. A function whose comment begins with "Collective" is called by
 * all ranks that it names, in the same order. A rank that fails outside of npumesh calls
 * npumesh_fail, so that the others do not wait for it. Every wait is bounded by the variables of
 * docs/env.md.
 *
 * C99; nothing here is a macro but the constants and NPUMESH_INTEGER.
 */
#ifndef NPUMESH_NPUMESH_H_
#define NPUMESH_NPUMESH_H_

#include <stddef.h>
#include <stdint.h>

/* An enumeration takes any number, as in C: one that it does not name is answered with
 * NPUMESH_INVALID_ARGUMENT. */
#ifdef __cplusplus
#define NPUMESH_INTEGER : int
extern "C" {
#else
#define NPUMESH_INTEGER
#endif

/* ---- errors ------------------------------------------------------------------------------- */

typedef enum npumesh_code NPUMESH_INTEGER {
  NPUMESH_OK = 0,
  NPUMESH_INVALID_ARGUMENT = 1, /* an option or argument is wrong: mend the call */
  NPUMESH_NOT_FOUND = 2,        /* a file, group or operator that was named does not exist */
  NPUMESH_CORRUPT = 3,          /* bytes from outside do not say what they should */
  NPUMESH_UNSUPPORTED = 4,      /* well formed, but npumesh cannot do it */
  NPUMESH_IO = 5,               /* the operating system refused */
  NPUMESH_OUT_OF_MEMORY = 6,    /* device or host memory is exhausted */
  NPUMESH_MISMATCH = 7,         /* ranks disagree about a collective */
  NPUMESH_TIMEOUT = 8,          /* a peer did not come in time */
  NPUMESH_PEER_LOST = 9,        /* a peer is dead or has left with an error */
  NPUMESH_INTERNAL = 10         /* a bug of npumesh */
} npumesh_code;

/* The text of the last failure on this thread, "" when there was none. Stays until the next call of
 * this thread fails. */
const char* npumesh_last_error(void);

/* The exit code that the command `npumesh` has for `code`: 0, 3 input, 4 run-time, 5 peer. */
int npumesh_exit_code(npumesh_code code);

/* "0.1.0"; a constant. */
const char* npumesh_version(void);

/* A number that is documented of the card of the variable NPUMESH_CARD, for example "streams"
 * (npumesh card show); 0 where the variable is unset. NPUMESH_NOT_FOUND: nothing is documented of
 * it. Local. */
npumesh_code npumesh_get_card_number(const char* fact, int64_t* number);

/* ---- options ------------------------------------------------------------------------------ */

/* A pair of texts. A key that is not known is NPUMESH_INVALID_ARGUMENT with the nearest names;
 * later pairs win. */
typedef struct npumesh_option {
  const char* key;
  const char* value;
} npumesh_option;

/* ---- the world ---------------------------------------------------------------------------- */

typedef struct npumesh_world npumesh_world;

/* Collective over all processes that mpirun or `npumesh launch` started: this process becomes a
 * rank with a simulated device. A process that was not started so is a world of one rank. MPI that
 * the program has initialised is used and not finalised; MPI that this call has initialised ends
 * with the process, so another world may follow. At most one world at a time in a process that MPI
 * started.
 *
 * Keys:
 *   NPUMESH_*, HCCL_*, TNG_LOG_LEVEL   in place of the environment variable (docs/env.md); among
 *                                      them NPUMESH_RECORD: folder for the flight record
 *   session.*                          defaults of all sessions (docs/backend.md): precision,
 *                                      dumps, tuning, profiling
 * Errors: a value that is not accepted; no device memory; a launcher's variables that contradict
 * MPI. */
npumesh_code npumesh_init(const npumesh_option* options, size_t count, npumesh_world** world);

/* Collective over all ranks: the orderly end. Waits for the others some seconds at most. Sessions
 * and groups of the world must be closed (NPUMESH_INVALID_ARGUMENT counts those that are not, and
 * the world stays); memory of npumesh_alloc is gone. Any other error comes after the end: the world
 * is gone. NULL is nothing and OK. */
npumesh_code npumesh_finalize(npumesh_world* world);

typedef struct npumesh_world_info {
  int32_t rank, size;             /* of all ranks */
  int32_t local_rank, local_size; /* on this host */
  int32_t node, node_count;       /* hosts */
  uint64_t memory_bytes;          /* of the simulated device */
  uint64_t memory_used;
  uint64_t memory_peak;
} npumesh_world_info;

/* Local. */
npumesh_code npumesh_get_world_info(npumesh_world* world, npumesh_world_info* info);

/* Says to the ranks that share this host that this rank has failed with `message`: those that wait
 * for it, or will, return NPUMESH_PEER_LOST with that text. Local. */
npumesh_code npumesh_fail(npumesh_world* world, const char* message);

/* Memory of the simulated device, 512-byte aligned; its content is not defined. Every address of
 * the process can be bound to inputs, outputs and collectives; this memory spares a copy where
 * other ranks read it (npumesh_session_stats). Local. */
npumesh_code npumesh_alloc(npumesh_world* world, uint64_t bytes, void** address);
/* NULL is nothing and OK. Not while a call uses the memory. */
npumesh_code npumesh_free(npumesh_world* world, void* address);

/* Sessions that are loaded from now on dump tensors as this file says, a dump configuration in the
 * vendor's JSON (docs/dump.md), unless their own options ask for a dump; NULL: they do not.
 * Errors: no such file; a field that is not accepted. Local. */
npumesh_code npumesh_set_dump(npumesh_world* world, const char* config_path);

/* Collective over all ranks. What the ranks compute and communicate from here to
 * npumesh_stop_profile is written below `folder` (docs/profile.md). Errors: a profile is being
 * written; folder. */
npumesh_code npumesh_start_profile(npumesh_world* world, const char* folder);
npumesh_code npumesh_stop_profile(npumesh_world* world);

/* ---- element types ------------------------------------------------------------------------ */

/* ge::DataType of the vendor: the numbers of attributes, not those of tensor descriptors in files.
 */
typedef enum npumesh_dtype NPUMESH_INTEGER {
  NPUMESH_FLOAT32 = 0,
  NPUMESH_FLOAT16 = 1,
  NPUMESH_INT8 = 2,
  NPUMESH_INT32 = 3,
  NPUMESH_UINT8 = 4,
  NPUMESH_INT16 = 6,
  NPUMESH_UINT16 = 7,
  NPUMESH_UINT32 = 8,
  NPUMESH_INT64 = 9,
  NPUMESH_UINT64 = 10,
  NPUMESH_FLOAT64 = 11,
  NPUMESH_BOOL = 12,
  NPUMESH_COMPLEX64 = 16,
  NPUMESH_COMPLEX128 = 17,
  NPUMESH_BFLOAT16 = 27,
  NPUMESH_UNDEFINED = 28,
  NPUMESH_INT4 = 29,
  NPUMESH_COMPLEX32 = 33,
  NPUMESH_HIFLOAT8 = 34,
  NPUMESH_FLOAT8_E5M2 = 35,
  NPUMESH_FLOAT8_E4M3FN = 36,
  NPUMESH_FLOAT8_E8M0 = 37,
  NPUMESH_FLOAT6_E3M2 = 38,
  NPUMESH_FLOAT6_E2M3 = 39,
  NPUMESH_FLOAT4_E2M1 = 40,
  NPUMESH_FLOAT4_E1M2 = 41
} npumesh_dtype;

/* "float32", "bfloat16", ...; "unknown" for a number without a type. A constant. */
const char* npumesh_dtype_name(int32_t dtype);
/* Bits of one element, packed; 0 for a type without a width and for a number without a type. */
int32_t npumesh_dtype_bits(int32_t dtype);

/* ---- tensors ------------------------------------------------------------------------------ */

/* The caller's memory stays as it is: an in-place operator of the graph writes to a copy. */
#define NPUMESH_READ_ONLY 0u
/* An in-place operator of the graph whose target is this input writes into `data`. */
#define NPUMESH_IN_PLACE 1u

/* An open dimension, and the rank of a tensor whose rank is not known. */
#define NPUMESH_OPEN_DIM (-1)
#define NPUMESH_OPEN_RANK (-1)

/* A tensor in memory: elements in C order without gaps. Elements smaller than a byte are packed. */
typedef struct npumesh_tensor {
  void* data;          /* any alignment; memory that is not aligned to an element is copied */
  uint64_t bytes;      /* that `data` has; at least what dtype and dims need */
  const int64_t* dims; /* `rank` of them; may be NULL for a rank of 0 */
  int32_t rank;
  int32_t dtype;  /* npumesh_dtype */
  uint32_t flags; /* of an input: NPUMESH_READ_ONLY or NPUMESH_IN_PLACE; else 0 */
} npumesh_tensor;

/* ---- sessions ----------------------------------------------------------------------------- */

/* One model on one rank. */
typedef struct npumesh_session npumesh_session;

/* Loads a model (.air, ONNX, or any form that docs/formats says) and checks everything that can be
 * checked before inputs are known. Weights in files are read from beside the model. Local; the
 * ranks of a model that communicates each load their own.
 *
 * Keys:
 *   those of docs/config.md           as in "ge_config.oo_level", "debug.graph_dump.type",
 *                                     "dump_config.enable_dump"
 *   session.*                         in place of what npumesh_init was told
 *   npumesh.threads                   threads of this session's kernels; else those of the rank
 *   npumesh.parameters                a flag 0 or 1 for each input, as in "0,1,1": parameters,
 *                                     which experimental_config.frozen_parameter freezes
 *   npumesh.group.<name>              the ranks of a group of the graph, as in "0,1"
 *   npumesh.allow_outside             1: weights may lie outside of the model's folder
 *   npumesh.missing_operators         zeros: an operator that npumesh does not have gives zeros, of
 *                                     the types that its node declares or its _inference_rule says,
 *                                     and leaves inputs that are its outputs as they are; a warning
 *                                     names it. refuse: the error below
 * Errors: file, node and field; the complete list of operators that npumesh does not have
 * (NPUMESH_UNSUPPORTED). */
npumesh_code npumesh_load_file(npumesh_world* world, const char* path,
                               const npumesh_option* options, size_t count,
                               npumesh_session** session);

/* The same from bytes in memory, which may go after the call. `path` stands in messages, and
 * weights in files are looked for beside it; NULL: "model". */
npumesh_code npumesh_load_bytes(npumesh_world* world, const void* bytes, size_t size,
                                const char* path, const npumesh_option* options, size_t count,
                                npumesh_session** session);

/* Ends a session: waits until its dump is written, gives its memory back. An error is one of the
 * dump; the session is gone all the same. NULL is nothing and OK. Local. */
npumesh_code npumesh_close(npumesh_session* session);

/* What the graph says of an input or an output. The texts and dims stay until the session runs, is
 * prepared or is closed. */
typedef struct npumesh_port {
  const char* name; /* of an input: its node; of an output: "node:port" that computes it */
  int64_t index;    /* of an input: its attribute `index`; of an output: its number */
  const int64_t* dims;
  int32_t rank;   /* NPUMESH_OPEN_RANK: not known */
  int32_t dtype;  /* NPUMESH_UNDEFINED: not known */
  int32_t ref;    /* of an input: 1 for a RefData, and for an input that an operator overwrites */
  int32_t host;   /* of an input: 1 for a small scalar or shape that lives on the host */
  uint64_t bytes; /* 0 while something is open */
} npumesh_port;

/* Inputs are ordered by index. Local. */
npumesh_code npumesh_count_ports(npumesh_session* session, size_t* inputs, size_t* outputs);
/* As the graph declares it. NPUMESH_INVALID_ARGUMENT: there is no such position. Local. */
npumesh_code npumesh_get_input(npumesh_session* session, size_t position, npumesh_port* port);
/* As it was in the last run or is after npumesh_prepare; before both, and after a npumesh_prepare
 * that could not know it, as the graph declares it. Local. */
npumesh_code npumesh_get_output(npumesh_session* session, size_t position, npumesh_port* port);

/* Gives memory for output `position`, whose final dtype, dims and bytes stand in `tensor`, its data
 * NULL. The memory is the allocator's and has to stay until the run returns; it is written in the
 * run or after it. NULL: no memory, and the run fails with NPUMESH_OUT_OF_MEMORY. Called on the
 * thread of npumesh_run, in order of the outputs, before the operators that compute them run. It
 * must not call functions of this session. */
typedef void* (*npumesh_allocator)(void* context, size_t position, const npumesh_tensor* tensor);

/* Who gives memory for outputs that a run does not bind; NULL: the library. Local. */
npumesh_code npumesh_set_allocator(npumesh_session* session, npumesh_allocator allocator,
                                   void* context);

/* Compiles for inputs of these types without running, and finds the types of the outputs. `data`
 * may be NULL; where shapes depend on the values of such an input, or inputs have open dimensions,
 * only what can be known is checked. Collective over the ranks whose graphs communicate. Errors:
 * input, expected and seen; operators that cannot be compiled; an output that is not what the graph
 * declares. */
npumesh_code npumesh_prepare(npumesh_session* session, const npumesh_tensor* inputs,
                             size_t input_count);

/* Runs the graph once. Collective over the ranks whose graphs communicate.
 *
 * Inputs, by position: the memory is read where it is, and copied only where the note on
 * npumesh_session_stats says so. A tensor of one element may stand for a declared scalar. A data of
 * NULL with a dtype of NPUMESH_UNDEFINED: a RefData (npumesh_port.ref) that was given without
 * NPUMESH_IN_PLACE keeps its content, a frozen parameter is the first run's; frozen memory has to
 * stay, unchanged, until the session is closed.
 *
 * Outputs, by position: for each `data`
 *   not NULL: the value is written there; `bytes` of it must suffice. dims and rank are not read;
 *             dtype is checked unless it is NPUMESH_UNDEFINED. The memory may be that of an input,
 *             at the same address or not: it changes after the last operator has read it. Outputs
 *             must not overlap each other.
 *   NULL:     the allocator of the session gives memory; without one `data` becomes memory that the
 *             caller gives back by npumesh_release.
 * Afterwards dtype, rank, dims and bytes of each are those of the value; dims stay until the
 * session runs, is prepared or is closed.
 *
 * After an error the content of outputs and of NPUMESH_IN_PLACE inputs is not defined; memory that
 * the library gave is gone. Errors: input or output, expected and seen; the operator that failed,
 * and of a collective why. */
npumesh_code npumesh_run(npumesh_session* session, const npumesh_tensor* inputs, size_t input_count,
                         npumesh_tensor* outputs, size_t output_count);

/* Gives back output memory that npumesh_run has given. Any thread, also after the session and the
 * world are gone. NULL is nothing. */
void npumesh_release(void* data);

/* Copies what a RefData holds after the last run. Errors: no RefData is at this position or none
 * was given; `bytes` are not those it has. Local. */
npumesh_code npumesh_read_ref(npumesh_session* session, size_t position, void* data,
                              uint64_t bytes);

/* Of a session, over all its runs. Inputs are copied where other ranks read them or an in-place
 * operator writes them without NPUMESH_IN_PLACE, where their memory is not aligned to an element,
 * where a RefData is not NPUMESH_IN_PLACE, and in graphs with shapes that values decide. Outputs
 * are copied where other ranks read or write them, where they are an input, a constant, a part of
 * another tensor or another output, where operators read memory of the same address after the
 * output is computed, and where their memory is not aligned to an element. Memory of npumesh_alloc
 * is not copied because of other ranks. */
typedef struct npumesh_session_stats {
  uint64_t runs;
  uint64_t plans; /* compilations */
  uint64_t input_bytes_copied;
  uint64_t output_bytes_copied;
  uint64_t arena_bytes; /* device memory of activations */
  uint64_t constant_bytes;
  double compile_seconds;
  double compute_seconds;
  double collective_seconds;
} npumesh_session_stats;

/* `size`: sizeof(npumesh_session_stats) of the caller; later versions may know more fields. Local.
 */
npumesh_code npumesh_get_stats(npumesh_session* session, npumesh_session_stats* stats, size_t size);

/* Writes AIR bytes to a file as GE's own serialisation has them (docs/export.md): whole or not at
 * all. A `path` that is a symbolic link is refused. Local. */
npumesh_code npumesh_save_air(const void* bytes, size_t size, const char* path);

/* Writes the model of file `model`, of any form that npumesh_load_file takes, as GE's text, whole
 * or not at all; what an operator of ONNX becomes is an operator of GE there. Weights in other
 * files stay there. A `path` that is a symbolic link is refused. Local. */
npumesh_code npumesh_save_text(const char* model, const char* path);

/* ---- questions about operators ------------------------------------------------------------ */

/* The type of operator `position` in alphabetic order, NULL after the last. A constant. */
const char* npumesh_op_type(size_t position);

typedef struct npumesh_op {
  size_t inputs, outputs, attrs;
} npumesh_op;

/* How many fields the interface of an operator has. NPUMESH_NOT_FOUND has the nearest names. */
npumesh_code npumesh_get_op(const char* type, npumesh_op* op);

typedef enum npumesh_op_part NPUMESH_INTEGER {
  NPUMESH_OP_INPUT = 0,
  NPUMESH_OP_OUTPUT = 1,
  NPUMESH_OP_ATTR = 2
} npumesh_op_part;

/* One input, output or attribute. The texts stay until the process ends. */
typedef struct npumesh_op_field {
  const char* name;
  /* Of inputs and outputs "required", "optional" or "dynamic"; of attributes the vendor's word for
   * the type: VT_INT, VT_FLOAT, VT_BOOL, VT_STRING, VT_DATA_TYPE, VT_TENSOR, VT_LIST_INT, ...;
   * VT_ANY where the operator takes several. */
  const char* kind;
  const char* fallback; /* of an optional attribute, as `npumesh ops` shows it; else NULL */
} npumesh_op_field;

/* In the order of the vendor's interface. An output that has the name of an input is that input,
 * changed in place. NPUMESH_NOT_FOUND: type; NPUMESH_INVALID_ARGUMENT: part or position. */
npumesh_code npumesh_get_op_field(const char* type, npumesh_op_part part, size_t position,
                                  npumesh_op_field* field);

/* ---- groups of ranks ---------------------------------------------------------------------- */

typedef struct npumesh_group npumesh_group;

typedef enum npumesh_reduce NPUMESH_INTEGER {
  NPUMESH_SUM = 0,
  NPUMESH_PROD = 1,
  NPUMESH_MAX = 2,
  NPUMESH_MIN = 3
} npumesh_reduce;

/* Collective over `ranks`, world ranks whose order gives the group ranks; NULL with a count of 0:
 * all ranks. `name` stands in messages and tells groups of the same ranks apart; it is the same on
 * all. Errors: this rank is no member, a member is there twice or does not exist; members that did
 * not come (NPUMESH_TIMEOUT, NPUMESH_PEER_LOST). */
npumesh_code npumesh_make_group(npumesh_world* world, const int32_t* ranks, size_t count,
                                const char* name, npumesh_group** group);
/* A mismatch that only shows now is an error; the group is gone all the same. NULL is nothing and
 * OK. Local. */
npumesh_code npumesh_close_group(npumesh_group* group);
/* This rank's number in the group and the number of ranks. Local. */
npumesh_code npumesh_get_group(npumesh_group* group, int32_t* rank, int32_t* size);

/* The collectives. Collective over the group, all of them; a call returns when the caller's memory
 * is its own again. Counts are elements, root and peer are group ranks. Addresses are any of the
 * process; memory of npumesh_alloc is used where it is, all other is copied through device memory
 * of the group. `send` may equal `recv` where sizes are equal. Before data move the ranks compare
 * what they were asked for: a difference is NPUMESH_MISMATCH with the same text on all. A group
 * that has failed stays failed. */

/* recv[i] = op over ranks of send[i]. */
npumesh_code npumesh_all_reduce(npumesh_group* group, const void* send, void* recv, uint64_t count,
                                int32_t dtype, npumesh_reduce op);
/* The same at `root`; elsewhere recv is not touched and may be NULL. */
npumesh_code npumesh_reduce_to(npumesh_group* group, const void* send, void* recv, uint64_t count,
                               int32_t dtype, npumesh_reduce op, int32_t root);
/* recv[r * count + i] = send[i] of rank r. */
npumesh_code npumesh_all_gather(npumesh_group* group, const void* send, void* recv, uint64_t count,
                                int32_t dtype);
/* recv[i] = op over ranks of send[rank * count + i]. */
npumesh_code npumesh_reduce_scatter(npumesh_group* group, const void* send, void* recv,
                                    uint64_t count, int32_t dtype, npumesh_reduce op);
/* data of all ranks = data of `root`. */
npumesh_code npumesh_broadcast(npumesh_group* group, void* data, uint64_t count, int32_t dtype,
                               int32_t root);
/* Block r of recv = block `rank` of rank r's send; blocks have `count` elements. send and recv must
 * not overlap. */
npumesh_code npumesh_all_to_all(npumesh_group* group, const void* send, void* recv, uint64_t count,
                                int32_t dtype);
/* The same with blocks of send_counts[r] and recv_counts[r] elements, one after the other. */
npumesh_code npumesh_all_to_all_v(npumesh_group* group, const void* send,
                                  const uint64_t* send_counts, void* recv,
                                  const uint64_t* recv_counts, int32_t dtype);
npumesh_code npumesh_barrier(npumesh_group* group);
/* Collective over this rank and `peer`. Messages from one rank to another pair in the order in
 * which both ask for them; both return when the receiver has the data. */
npumesh_code npumesh_send(npumesh_group* group, const void* data, uint64_t count, int32_t dtype,
                          int32_t peer);
npumesh_code npumesh_recv(npumesh_group* group, void* data, uint64_t count, int32_t dtype,
                          int32_t peer);

#ifdef __cplusplus
}
#endif

#endif /* NPUMESH_NPUMESH_H_ */
