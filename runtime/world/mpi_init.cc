// MPI_Init and MPI_Init_thread of a program that starts MPI itself (mpi_start.h).
#include <mpi.h>

#include "runtime/world/mpi_start.h"

extern "C" {

int MPI_Init(int* argc, char*** argv) {
  return npumesh::StartOfProgram([=] { return PMPI_Init(argc, argv); });
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  return npumesh::StartOfProgram([=] { return PMPI_Init_thread(argc, argv, required, provided); });
}

}  // extern "C"
