// Checks that identity providers can be used before the first user logs in: a wrong address is reported when the
// connection is created. The checks run in the background, so that neither the start nor a change waits for them, and
// nothing they read is kept. Only an administrator who asks for the state of one connection waits for the answer.
// docs/understand/decisions/connections.md#providers-are-checked-before-the-first-login
import type { Logger } from 'pino';
import type { XmlReader } from '../../capabilities/saml-messages/reader.ts';
import type { Outbound } from '../../http/outbound/outbound.ts';
import { type OutboundFailure, outboundFailureOf } from '../../http/outbound/outbound-error.ts';
import type { Connection } from '../../records/collections.ts';
import type { Background } from '../../runtime/background.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Config } from '../../tenant/config.ts';
import type { Directories } from './ldap/directories.ts';
import { isDirectory, namesWarning } from './ldap/nameless.ts';
import { openIdProviders } from './oidc/providers.ts';
import type { UpstreamDependencies } from './redirect.ts';
import { samlMetadata } from './samlp/metadata-fetch.ts';
import { strategyOf } from './strategies.ts';

interface ProviderChecksDependencies {
  config: Pick<Config, 'connections'>;
  fetch: Outbound['fetch'];
  background: Background;
  /** Elapsed time. */
  clock: Clock;
  log: Pick<Logger, 'warn'>;
  directories: Pick<Directories, 'check' | 'hasOwnIds'>;
  xml: XmlReader;
  /** Aborted when the server shuts down. */
  ending: AbortSignal;
}

type CheckedConnection = Connection;

export interface ProviderChecks {
  /** Checks the provider of one connection in the background, and logs a warning when it cannot be used. */
  check(connection: CheckedConnection): void;
  /** Like {@link check}, for every connection that at least one application may use. */
  checkAll(): Promise<void>;
  /** @returns why nobody can log in with it; undefined when no fault was found. */
  faultOf(connection: Connection): Promise<ProviderFault | undefined>;
  /** Returns whether the connection is that of a directory whose users are identified by a name; false if it cannot be asked. */
  usesNames(connection: Connection): Promise<boolean>;
}

export interface ProviderFault {
  /** In English. */
  message: string;
  /** The kind of failure, when a request to the provider failed. */
  failure?: OutboundFailure;
}

const CONCURRENT_CHECKS = 4;

export function providerChecks({
  config,
  fetch,
  background,
  clock,
  log,
  directories,
  xml,
  ending,
}: ProviderChecksDependencies): ProviderChecks {
  const fetchUntilEnd: Outbound['fetch'] = (url, { signal, ...init } = {}) =>
    fetch(url, { ...init, signal: signal ? AbortSignal.any([ending, signal]) : ending });
  // Every check has a cache of its own, so that it never finds an old answer and no login uses what a check has read.
  const checkDependencies = () => ({
    openId: openIdProviders({ fetch: fetchUntilEnd, clock }),
    samlMetadata: samlMetadata({ fetch: fetchUntilEnd, clock, xml }),
  });
  /** Warns of a directory without ids of its own. @returns why it cannot be asked. */
  const warnOfNames = async (connection: CheckedConnection): Promise<Error | undefined> => {
    try {
      const warning = await namesWarning(directories, connection);
      if (warning !== undefined) log.warn({ connection: connection.name }, warning);
      return undefined;
    } catch (thrown) {
      return directoryFault(thrown);
    }
  };
  const check = (connections: readonly CheckedConnection[]) => {
    const queue = [...connections];
    background.run('asking the providers of connections', async () => {
      const deps = checkDependencies();
      const worker = async () => {
        for (let one = queue.shift(); one !== undefined && !ending.aborted; one = queue.shift()) {
          const fault = await (isDirectory(one) ? warnOfNames(one) : faultOf(deps, one));
          if (fault === undefined || ending.aborted) continue;
          log.warn(
            { connection: one.name, err: fault },
            `nobody can log in with the connection ${one.name} now: ${fault.message}`,
          );
        }
      };
      await Promise.all(Array.from({ length: CONCURRENT_CHECKS }, worker));
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
    usesNames: async (connection) =>
      isDirectory(connection) &&
      (await namesWarning(directories, connection).catch(() => undefined)) !== undefined,
    faultOf: async (connection) => {
      const fault = isDirectory(connection)
        ? await directories.check(connection).catch(directoryFault)
        : await faultOf(checkDependencies(), connection);
      if (fault === undefined) return undefined;
      const failure = outboundFailureOf(fault);
      return { message: fault.message, ...(failure && { failure }) };
    },
  };
}

/** Returns an error whose message includes what the directory, or the connection to it, reported. */
function directoryFault(thrown: unknown): Error {
  const { message, cause } = thrown as Error;
  return cause instanceof Error ? new Error(`${message} ${cause.message}`, { cause }) : new Error(message);
}

async function faultOf(
  deps: Pick<UpstreamDependencies, 'openId' | 'samlMetadata'>,
  { options, ...connection }: CheckedConnection,
): Promise<Error | undefined> {
  const strategy = strategyOf(connection);
  if (strategy?.page !== 'redirect') return undefined;
  try {
    await strategy.check?.(deps, { options });
    return undefined;
  } catch (thrown) {
    return thrown instanceof Error ? thrown : new Error(String(thrown));
  }
}
