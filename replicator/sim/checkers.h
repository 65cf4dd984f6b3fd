// What must hold, whatever happened. The checkers know the two logs, the ledger, the state file and what an operator
// can see; nothing of how copying works. Each names itself in its sentence:
//   silent loss      a message that the upstream still holds, and that no ledger row names, is downstream
//   duplicate        copies beyond the first are counted in the row (own_duplicate), or an operator asked for them
//   order            first copies stand in the upstream's order
//   acknowledgment   what is committed survives downstream what `ack` promises
//   watermark        nothing below it is missing downstream, unless the downstream lost it
//   offset map       what it says is equal on both sides is equal
//   false cause      a fault names what was really done to that partition (faults.h); none where nothing was done
//   bounds           budget, uncommitted batches, one unresolved send per partition
//   server killed    a 0.8 server with deduplication never gets a send that it has wholly
//   state file       sound, whatever tore it
//   convergence      lag 0 in bounded virtual time after the faults end (world.cc)
#pragma once

namespace replicator::sim {

class World;
void check_running(World& world);
void check_end(World& world);

}  // namespace replicator::sim
