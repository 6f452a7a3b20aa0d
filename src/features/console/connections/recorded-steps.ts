// Wraps what a login depends on, so that each request and script of a trial login is recorded as a step.

import type { Scripts } from '../../../capabilities/scripts/scripts.ts';
import type { Outbound } from '../../../http/outbound.ts';
import type { Clock } from '../../../runtime/clock.ts';
import type { CustomDatabases } from '../../connections/database/custom.ts';
import type { Directories } from '../../connections/ldap/directories.ts';
import { openIdProviders } from '../../connections/oidc/providers.ts';
import type { UpstreamDependencies } from '../../connections/redirect.ts';
import { scriptRunner } from '../../connections/run-script.ts';
import { samlMetadata } from '../../connections/samlp/metadata-fetch.ts';
import { type Secrets, type Step, shownAddress, shownBody, shownJson } from './steps.ts';

/** The recorded steps, and the secrets to mask in them. */
export interface Trace {
  steps: Step[];
  secrets: Secrets;
}

/** Statuses whose responses have no body (Fetch §4.1). */
const EMPTY = new Set([204, 205, 304]);

/** Records each request once it is answered. */
function tracedFetch(fetch: Outbound['fetch'], clock: Clock, { steps, secrets }: Trace): Outbound['fetch'] {
  return async (input, init) => {
    const startedAt = clock();
    const request = input instanceof Request ? input : undefined;
    const { address } = shownAddress(request?.url ?? String(input), secrets);
    const method = init?.method ?? request?.method ?? 'GET';
    const step = { kind: 'request', method, address } as const;
    try {
      const response = await fetch(input, init);
      const text = await response.text();
      const { status, statusText, headers } = response;
      steps.push({ ...step, status, ms: clock() - startedAt, text: shownBody(text, secrets) });
      return new Response(EMPTY.has(status) ? null : text, { status, statusText, headers });
    } catch (thrown) {
      const failure = secrets.mask(thrown instanceof Error ? thrown.message : String(thrown));
      steps.push({ ...step, ms: clock() - startedAt, failure, text: '' });
      throw thrown;
    }
  };
}

/** Records each run of a script. */
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
        printed: printed.map((line) => ({ ...line, text: secrets.mask(line.text) })),
        failure: failure && { ...failure, message: secrets.mask(failure.message) },
      });
      return outcome;
    },
  };
}

/** Records the user that a directory has found. */
export function tracedDirectories(directories: Directories, { steps, secrets }: Trace): Directories {
  return {
    ...directories,
    prove: async (...args) => {
      const user = await directories.prove(...args);
      if (user !== undefined) steps.push(profileStep(user, secrets));
      return user;
    },
  };
}

/** Records the user that the script of a custom database has found. */
export function tracedDatabases(databases: CustomDatabases, { steps, secrets }: Trace): CustomDatabases {
  return {
    ...databases,
    login: async (...args) => {
      const answer = await databases.login(...args);
      if (answer === 'failed' || 'wrong' in answer) return answer;
      // The factors contain the secrets of authenticator apps.
      const { factors: _, ...profile } = answer;
      steps.push(profileStep({ id: answer.upstreamId, profile }, secrets));
      return answer;
    },
  };
}

/** Returns the step that shows the user whom a connection has found. */
export function profileStep({ id, profile }: { id: string; profile: object }, secrets: Secrets): Step {
  return { kind: 'profile', id: secrets.mask(id), text: shownJson(profile, secrets) };
}

/**
 * Wraps the dependencies of redirect strategies. The metadata of providers is fetched anew, so that it is recorded.
 */
export function tracedUpstream(
  deps: UpstreamDependencies & { scripts: Pick<Scripts, 'run'> },
  trace: Trace,
): UpstreamDependencies {
  const { clock, xml } = deps;
  const fetch = tracedFetch(deps.fetch, clock, trace);
  return {
    ...deps,
    fetch,
    runScript: scriptRunner(tracedScripts(deps.scripts, trace)),
    openId: openIdProviders({ fetch, clock }),
    samlMetadata: samlMetadata({ fetch, clock, xml }),
  };
}
