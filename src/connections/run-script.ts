// Runs the scripts of connections. What one fails with is told the application in the script's own words, as the hosted
// service does: scripts say so why a user may not come in.
import type { ScriptFailure } from '../scripts/limits.ts';
import { type Scripts, textsIn } from '../scripts/scripts.ts';
import { type ConnectionScript, type UpstreamDependencies, upstreamFault } from './redirect.ts';

/** @see UpstreamDependencies.runScript */
export function scriptRunner(scripts: Pick<Scripts, 'run'>): UpstreamDependencies['runScript'] {
  return async (script) => {
    const { connection, name, source } = script;
    const { configuration } = connection.options;
    const { result, failure } = await scripts.run({
      of: connection.name,
      source,
      entry: name,
      args: script.arguments,
      globals: { configuration: configuration ?? {} },
      // Hidden from the message: a script may repeat the secrets that it was given.
      hidden: [...script.secrets, ...textsIn(configuration)],
    });
    if (failure !== undefined) throw faultOf(script, failure);
    return result;
  };
}

function faultOf({ name }: ConnectionScript, { kind, name: error, message }: ScriptFailure) {
  if (kind !== 'script') return upstreamFault('access_denied', `The ${name} script failed: ${message}`);
  return upstreamFault(
    error === 'UnauthorizedError' ? 'unauthorized' : 'access_denied',
    message || `The ${name} script failed.`,
  );
}
