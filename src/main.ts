// The process: starts the server, says where it is, and stops it when asked to.
import { createLog } from './log.ts';
import { runServer } from './run.ts';

await runServer(process.env, createLog(process.env.LOG_LEVEL));
