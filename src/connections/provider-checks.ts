// Providers of connections, asked ahead of the first login for what a login needs of them: what their addresses do not answer
// is said when the connection is made, and not to the first user. Nothing waits for it, and nothing of it is kept.
import type { Logger } from 'pino';
import type { Outbound } from '../http/outbound.ts';
import type { Connection } from '../records/collections.ts';
import type { Background } from '../runtime/background.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Config } from '../tenant/config.ts';
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
  ending,
}: ProviderChecksDependencies): ProviderChecks {
  const untilEnd: Outbound['fetch'] = (url, { signal, ...init } = {}) =>
    fetch(url, { ...init, signal: signal ? AbortSignal.any([ending, signal]) : ending });
  const check = (connections: readonly Checked[]) => {
    const left = [...connections];
    background.run('asking the providers of connections', async () => {
      // What is found is not kept: a login decides by what its provider says then.
      const deps = { fetch: untilEnd, clock, openId: openIdProviders({ fetch: untilEnd, clock }) };
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
  };
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
