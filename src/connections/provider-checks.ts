// Asks the providers of connections, ahead of the first login, for what a login needs of them: a wrong address is
// reported when the connection is made, and not to the first user. It runs in the background, so that no start and
// no change waits for it, and keeps nothing. Only an administrator who asks about a connection waits for the
// answer.
import type { Logger } from 'pino';
import type { Outbound } from '../http/outbound.ts';
import { type OutboundFailure, outboundFailureOf } from '../http/outbound-error.ts';
import type { Connection } from '../records/collections.ts';
import type { Background } from '../runtime/background.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Config } from '../tenant/config.ts';
import type { Directories } from './ldap/directories.ts';
import { directoryStrategies } from './ldap/strategy.ts';
import { openIdProviders } from './oidc/providers.ts';
import type { UpstreamDependencies } from './redirect.ts';
import { strategyOf } from './strategies.ts';

interface ProviderChecksDependencies {
  config: Pick<Config, 'connections'>;
  fetch: Outbound['fetch'];
  background: Background;
  /** Elapsed time. */
  clock: Clock;
  log: Pick<Logger, 'warn'>;
  directories: Pick<Directories, 'check'>;
  /** Aborted when the server is about to end. */
  ending: AbortSignal;
}

type Checked = Pick<Connection, 'name' | 'strategy' | 'options'>;

/** Asks providers, in the background. One that does not answer is a warning in the server's log. */
export interface ProviderChecks {
  /** That of one connection. */
  check(connection: Checked): void;
  /** Those of all connections that an application has. */
  checkAll(): Promise<void>;
  /** Asks that of one connection now. @returns why nobody can log in with it; undefined where nothing is known to be wrong. */
  faultOf(connection: Connection): Promise<ProviderFault | undefined>;
}

/** Why nobody can log in: in English, and by what kind of failure where a request failed. */
export interface ProviderFault {
  message: string;
  failure?: OutboundFailure;
}

/** Providers that are asked at once. */
const AT_ONCE = 4;

/** @see ProviderChecks */
export function providerChecks({
  config,
  fetch,
  background,
  clock,
  log,
  directories,
  ending,
}: ProviderChecksDependencies): ProviderChecks {
  const untilEnd: Outbound['fetch'] = (url, { signal, ...init } = {}) =>
    fetch(url, { ...init, signal: signal ? AbortSignal.any([ending, signal]) : ending });
  // The answers are thrown away: a login asks its provider itself.
  const asking = () => ({ fetch: untilEnd, clock, openId: openIdProviders({ fetch: untilEnd, clock }) });
  const check = (connections: readonly Checked[]) => {
    const left = [...connections];
    background.run('asking the providers of connections', async () => {
      const deps = asking();
      const work = async () => {
        for (let one = left.shift(); one !== undefined && !ending.aborted; one = left.shift()) {
          const fault = await faultOf(deps, one);
          if (fault === undefined || ending.aborted) continue;
          log.warn(
            { connection: one.name, err: fault },
            `nobody can log in with the connection ${one.name} now: ${fault.message}`,
          );
        }
      };
      await Promise.all(Array.from({ length: AT_ONCE }, work));
    });
  };
  return {
    check: (connection) => check([connection]),
    checkAll: async () =>
      check(
        (await config.connections()).filter(
          ({ enabled_clients, is_domain_connection }) =>
            enabled_clients.length > 0 || is_domain_connection === true,
        ),
      ),
    faultOf: async (connection) => {
      const isDirectory = directoryStrategies.some(({ name }) => name === connection.strategy);
      const fault = isDirectory
        ? await directories.check(connection).catch(directoryFault)
        : await faultOf(asking(), connection);
      if (fault === undefined) return undefined;
      const failure = outboundFailureOf(fault);
      return { message: fault.message, ...(failure && { failure }) };
    },
  };
}

/** An error that repeats what the directory, or the connection to it, said. */
function directoryFault(thrown: unknown): Error {
  const { message, cause } = thrown as Error;
  return cause instanceof Error ? new Error(`${message} ${cause.message}`, { cause }) : new Error(message);
}

async function faultOf(
  deps: Pick<UpstreamDependencies, 'fetch' | 'openId' | 'clock'>,
  { options, ...connection }: Checked,
): Promise<Error | undefined> {
  const strategy = strategyOf(connection);
  if (strategy?.page !== 'redirect') return undefined;
  try {
    await strategy.check?.(deps, { options: { ...options } });
    return undefined;
  } catch (thrown) {
    return thrown instanceof Error ? thrown : new Error(String(thrown));
  }
}
