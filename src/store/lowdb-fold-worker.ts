// The thread that folds, so that reading and writing whole snapshots never holds up the event loop.
import { workerData } from 'node:worker_threads';
import { fold } from './lowdb-fold.ts';

await fold(workerData);
