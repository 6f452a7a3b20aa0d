// Runs the scripts of connections.
import { type ConnectionScript, upstreamFault } from './redirect.ts';

/** @see UpstreamDependencies.runScript */
export async function runScript({ name }: ConnectionScript): Promise<unknown> {
  throw upstreamFault('access_denied', `The ${name} script cannot be run: this server has no sandbox.`);
}
