// Runs the scripts of connections. A script's error message is sent to the application, as the hosted service does: this is
// how a script explains why a user may not log in.
import type { ScriptFailure } from '../../capabilities/scripts/limits.ts';
import { type Scripts, textsIn } from '../../capabilities/scripts/scripts.ts';
import { type ConnectionScript, type UpstreamDependencies, upstreamFault } from './redirect.ts';

/** Returns the function that runs a script of a connection ({@link UpstreamDependencies.runScript}). */
export function scriptRunner(scripts: Pick<Scripts, 'run'>): UpstreamDependencies['runScript'] {
  return async (script) => {
    const { connection, name, source } = script;
    const { configuration } = connection.options;
    const { result, failure } = await scripts.run({
      of: connection.name,
      askedBy: script.clientId,
      source,
      entry: name,
      args: script.arguments,
      globals: { configuration: configuration ?? {} },
      // These are removed from the error message, which may repeat the secrets that the script was given.
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
