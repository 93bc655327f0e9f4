#include <mpi.h>
// MPI_Send(1)
int main() {
  int r; const char* s = "MPI_Recv(";
  MPI_Init(0, 0);
  if (r) MPI_Send(&r, 1, /* ) */ MPI_INT, 0, 0, MPI_COMM_WORLD); else return MPI_Finalize();
}
