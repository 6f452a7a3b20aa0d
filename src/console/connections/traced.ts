// What a login at a connection is tried with: the same as every login, and each request and script is a step.
import type { CustomDatabases } from '../../connections/database/custom.ts';
import type { Directories } from '../../connections/ldap/directories.ts';
import { openIdProviders } from '../../connections/oidc/providers.ts';
import type { UpstreamDependencies } from '../../connections/redirect.ts';
import { scriptRunner } from '../../connections/run-script.ts';
import type { Outbound } from '../../http/outbound.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Scripts } from '../../scripts/scripts.ts';
import { type Secrets, type Step, shownAddress, shownBody, shownJson } from './steps.ts';

/** What is seen while a login is tried. */
export interface Trace {
  steps: Step[];
  secrets: Secrets;
}

/** Bodies of these have no content (Fetch §4.1). */
const EMPTY = new Set([204, 205, 304]);

/** Requests, each a step once it is answered. */
function tracedFetch(fetch: Outbound['fetch'], clock: Clock, { steps, secrets }: Trace): Outbound['fetch'] {
  return async (input, init) => {
    const began = clock();
    const request = input instanceof Request ? input : undefined;
    const { address } = shownAddress(request?.url ?? String(input), secrets);
    const method = init?.method ?? request?.method ?? 'GET';
    const step = { kind: 'request', method, address } as const;
    try {
      const response = await fetch(input, init);
      const text = await response.text();
      const { status, statusText, headers } = response;
      steps.push({ ...step, status, ms: clock() - began, text: shownBody(text, secrets) });
      return new Response(EMPTY.has(status) ? null : text, { status, statusText, headers });
    } catch (thrown) {
      const failure = secrets.without(thrown instanceof Error ? thrown.message : String(thrown));
      steps.push({ ...step, ms: clock() - began, failure, text: '' });
      throw thrown;
    }
  };
}

/** Scripts, each run a step. */
export function tracedScripts(
  scripts: Pick<Scripts, 'run'>,
  { steps, secrets }: Trace,
): Pick<Scripts, 'run'> {
  return {
    run: async (run) => {
      const outcome = await scripts.run(run);
      const { printed, used, failure } = outcome;
      steps.push({
        kind: 'script',
        name: run.entry,
        used,
        printed: printed.map((line) => ({ ...line, text: secrets.without(line.text) })),
        failure: failure && { ...failure, message: secrets.without(failure.message) },
      });
      return outcome;
    },
  };
}

/** Directories: who was found is a step. */
export function tracedDirectories(directories: Directories, { steps, secrets }: Trace): Directories {
  return {
    ...directories,
    prove: async (...asked) => {
      const user = await directories.prove(...asked);
      if (user !== undefined) steps.push(profileStep(user, secrets));
      return user;
    },
  };
}

/** Databases elsewhere: whom a script has found is a step. */
export function tracedDatabases(databases: CustomDatabases, { steps, secrets }: Trace): CustomDatabases {
  return {
    ...databases,
    login: async (...asked) => {
      const answer = await databases.login(...asked);
      if (answer === 'failed' || 'wrong' in answer) return answer;
      // Secrets of apps that make codes are among the factors.
      const { factors: _, ...profile } = answer;
      steps.push(profileStep({ id: answer.upstreamId, profile }, secrets));
      return answer;
    },
  };
}

/** Whom a connection has found. */
export function profileStep({ id, profile }: { id: string; profile: object }, secrets: Secrets): Step {
  return { kind: 'profile', id: secrets.without(id), text: shownJson(profile, secrets) };
}

/** What strategies are given. What OpenID providers publish is asked for anew, so that it is seen. */
export function tracedUpstream(
  deps: UpstreamDependencies & { scripts: Pick<Scripts, 'run'> },
  trace: Trace,
): UpstreamDependencies {
  const { clock } = deps;
  const fetch = tracedFetch(deps.fetch, clock, trace);
  return {
    ...deps,
    fetch,
    runScript: scriptRunner(tracedScripts(deps.scripts, trace)),
    openId: openIdProviders({ fetch, clock }),
  };
}
