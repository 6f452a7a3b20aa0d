// Where tests keep files that need not survive the machine.
import { existsSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';

const MEMORY = '/dev/shm';
const ROOM = 1 << 30;
const hasRoom = ({ bavail, bsize }: { bavail: number; bsize: number }) => bavail * bsize > ROOM;

/** A directory in memory if it has space, otherwise the system's temporary directory: so tests do not wait for a disk. */
export const SCRATCH = existsSync(MEMORY) && hasRoom(statfsSync(MEMORY)) ? MEMORY : tmpdir();
