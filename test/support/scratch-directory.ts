// Where tests keep what need not survive the machine.
import { existsSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';

const MEMORY = '/dev/shm';
const ROOM = 1 << 30;
const hasRoom = ({ bavail, bsize }: { bavail: number; bsize: number }) => bavail * bsize > ROOM;

/** A directory in memory where there is room, else the system's for temporary files: nothing waits for a disk there. */
export const SCRATCH = existsSync(MEMORY) && hasRoom(statfsSync(MEMORY)) ? MEMORY : tmpdir();
