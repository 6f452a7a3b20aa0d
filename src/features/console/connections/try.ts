// "Try connection": runs a login like any other as far as the profile. It creates no user and no session, and issues
// no token.
import type { Caller } from '../../../capabilities/protection/rate-limit.ts';
import type { Packages } from '../../../capabilities/scripts/packages/packages.ts';
import type { Scripts } from '../../../capabilities/scripts/scripts.ts';
import { AuthError } from '../../../http/errors.ts';
import type { Outbound } from '../../../http/outbound/outbound.ts';
import type { Connection } from '../../../records/collections.ts';
import type { Clock } from '../../../runtime/clock.ts';
import type { CustomDatabases } from '../../connections/database/custom/database-custom.ts';
import type { Directories } from '../../connections/ldap/directories.ts';
import { openIdProviders } from '../../connections/oidc/providers.ts';
import type { RedirectStrategy, UpstreamDependencies, UpstreamRedirect } from '../../connections/redirect.ts';
import { scriptRunner } from '../../connections/redirect.ts';
import { samlMetadata } from '../../connections/samlp/metadata-fetch.ts';
import { strategyOf } from '../../connections/strategies.ts';
import type { FormStrategy, ProofDependencies } from '../../connections/strategy.ts';
import { CALLBACK } from '../../connections/upstream/begin.ts';
import type { TestLoginAnswer, TestLogins } from '../../connections/upstream/test-logins.ts';
import { secretsIn } from './console-connection-options.ts';
import {
  createSecrets,
  type Secrets,
  type Step,
  shownAddress,
  shownBody,
  shownJson,
  shownValues,
} from './steps.ts';

export interface TryDependencies extends UpstreamDependencies, ProofDependencies {
  scripts: Pick<Scripts, 'run'>;
  packages: Pick<Packages, 'filesFor'>;
  testLogins: TestLogins;
  databasesBy(scripts: Pick<Scripts, 'run'>): CustomDatabases;
}

type TryMethod =
  | { kind: 'redirect'; strategy: RedirectStrategy }
  | { kind: 'form'; strategy: FormStrategy }
  | { kind: 'none' };

export function tryMethodOf(connection: Pick<Connection, 'strategy'>): TryMethod {
  const strategy = strategyOf(connection);
  if (strategy?.page === 'redirect') return { kind: 'redirect', strategy };
  if (strategy?.page === 'form') return { kind: 'form', strategy };
  return { kind: 'none' };
}

/** @returns the steps so far, and where to send the browser if the login could begin. */
export async function startTry(
  deps: UpstreamDependencies & Pick<TryDependencies, 'testLogins' | 'scripts'>,
  owner: { userId: string; session: string },
  { connection, strategy }: { connection: Connection; strategy: RedirectStrategy },
): Promise<{ steps: Step[]; redirect?: UpstreamRedirect }> {
  const login = await deps.testLogins.begin({ ...owner, connectionId: connection.id });
  const trace = traceOf(connection, [login.state, login.nonce, login.codeVerifier]);
  const request = { connection, redirectUri: callbackOf(deps), ...login, params: {}, additional: {} };
  try {
    const redirect = await strategy.redirect(tracedUpstream(deps, trace), request);
    trace.steps.push(redirectStep(redirect, trace.secrets));
    await deps.testLogins.storeRedirect(login.state, trace.steps);
    return { redirect, steps: trace.steps };
  } catch (thrown) {
    return { steps: [...trace.steps, errorStep(thrown, trace.secrets)] };
  }
}

/** Evaluates the provider's response. @returns all steps. */
export async function finishTry(
  deps: UpstreamDependencies & Pick<TryDependencies, 'scripts'>,
  answer: TestLoginAnswer,
  connection: Connection,
): Promise<Step[]> {
  const { parameters, isPosted, state, nonce, codeVerifier } = answer;
  const trace = traceOf(connection, [state, nonce, codeVerifier]);
  trace.secrets.collect(parameters);
  const before = (answer.redirect ?? []) as Step[];
  trace.steps.push(...before, { kind: 'answer', values: shownValues(parameters, trace.secrets) });
  const method = tryMethodOf(connection);
  try {
    if (method.kind !== 'redirect')
      throw new AuthError(400, 'invalid_request', 'The connection has changed.');
    if (answer.connection !== undefined && answer.connection !== connection.name)
      throw new AuthError(400, 'invalid_request', 'The answer came to the address of another connection.');
    const identity = await method.strategy.identify(tracedUpstream(deps, trace), {
      connection,
      clientId: undefined,
      redirectUri: callbackOf(deps),
      state,
      nonce,
      codeVerifier,
      parameters,
      isPosted,
    });
    trace.secrets.collect(identity.grant);
    trace.steps.push(profileStep(identity, trace.secrets));
  } catch (thrown) {
    trace.steps.push(errorStep(thrown, trace.secrets));
  }
  return trace.steps;
}

interface PasswordTry {
  connection: Connection;
  strategy: FormStrategy;
  identifier: string;
  password: string;
  caller: Caller;
  /** The application that the log names when the password is wrong. */
  clientId: string;
}

/**
 * Checks an identifier and a password, which counts as an attempt of any login does.
 * @returns the steps, and whether the password is right.
 */
export async function tryPassword(
  proving: ProofDependencies & Pick<TryDependencies, 'databasesBy' | 'scripts'>,
  { connection, strategy, identifier, password, caller, clientId }: PasswordTry,
): Promise<{ steps: Step[]; isRight: boolean }> {
  const trace = traceOf(connection, [password]);
  const deps = {
    ...proving,
    directories: tracedDirectories(proving.directories, trace),
    customDatabases: tracedDatabases(proving.databasesBy(tracedScripts(proving.scripts, trace)), trace),
  };
  try {
    await strategy.check(deps, { clientId, connection, identifier, credentials: password, caller });
    return { steps: trace.steps, isRight: true };
  } catch (thrown) {
    trace.steps.push(errorStep(thrown, trace.secrets));
    return { steps: trace.steps, isRight: false };
  }
}

function callbackOf({ baseUrl }: Pick<TryDependencies, 'baseUrl'>): string {
  return `${baseUrl}${CALLBACK}`;
}

/** @param more secrets in addition to those of the connection. */
function traceOf({ options }: Connection, more: readonly string[]): Trace {
  return { steps: [], secrets: createSecrets([...secretsIn(options), ...more]) };
}

function redirectStep(redirect: UpstreamRedirect, secrets: Secrets): Step {
  if ('url' in redirect) return { kind: 'redirect', method: 'GET', ...shownAddress(redirect.url, secrets) };
  const { address } = shownAddress(redirect.action, secrets);
  return { kind: 'redirect', method: 'POST', address, values: shownValues(redirect.fields, secrets) };
}

/**
 * Returns the step of an error. Unexpected errors are shown, too: administrators try connections to find out what is
 * wrong.
 */
function errorStep(thrown: unknown, secrets: Secrets): Step {
  const authError = thrown instanceof AuthError ? thrown : undefined;
  const { message, cause } = thrown instanceof Error ? thrown : new Error(String(thrown));
  const causeText = cause instanceof Error && cause.message !== '' ? ` (${cause.message})` : '';
  const text = secrets.mask(`${authError?.error_description ?? message}${causeText}`);
  return { kind: 'error', error: authError?.error ?? 'server_error', text };
}

// Wraps what a login depends on, so that each request and script of a trial login is recorded as a step.

interface Trace {
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
      const fault = secrets.mask(thrown instanceof Error ? thrown.message : String(thrown));
      steps.push({ ...step, ms: clock() - startedAt, fault, text: '' });
      throw thrown;
    }
  };
}

function tracedScripts(scripts: Pick<Scripts, 'run'>, { steps, secrets }: Trace): Pick<Scripts, 'run'> {
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
function tracedDirectories(directories: Directories, { steps, secrets }: Trace): Directories {
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
function tracedDatabases(databases: CustomDatabases, { steps, secrets }: Trace): CustomDatabases {
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
function profileStep({ id, profile }: { id: string; profile: object }, secrets: Secrets): Step {
  return { kind: 'profile', id: secrets.mask(id), text: shownJson(profile, secrets) };
}

/**
 * Wraps the dependencies of redirect strategies. The metadata of providers is fetched anew, so that it is recorded.
 */
function tracedUpstream(
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
