// Finds connections with which nobody can log in. Providers are asked in the background and seldom, so that no page
// waits for them.
import { isDeepStrictEqual } from 'node:util';
import type { Connection } from '../../../records/collections.ts';
import type { Background } from '../../../runtime/background.ts';
import type { Clock } from '../../../runtime/clock.ts';
import type { Config } from '../../../tenant/config.ts';
import type { ProviderFault } from '../../connections/provider-checks.ts';

interface BrokenConnection {
  name: string;
  fault: ProviderFault;
}

export interface ConnectionChecks {
  /**
   * Returns the last findings about connections that have not changed since. Starts another check in the background
   * when findings are missing or old.
   */
  broken(): Promise<readonly BrokenConnection[]>;
  /** As {@link broken}: the names of connections with a directory whose users are identified by a name. */
  named(): Promise<readonly string[]>;
}

interface ConnectionChecksDependencies {
  config: Pick<Config, 'connections'>;
  background: Background;
  clock: Clock;
  faultOf(connection: Connection): Promise<ProviderFault | undefined>;
  usesNames(connection: Connection): Promise<boolean>;
  /** Aborted when the server stops. */
  ending: AbortSignal;
}

/** How long a finding is valid, milliseconds; the number of concurrent checks; the maximum number of connections. */
const VALID_MS = 600_000;
const MAX_CONCURRENT = 4;
const MAX_CONNECTIONS = 200;

interface Finding {
  connection: Connection;
  checkedAt: number;
  fault: ProviderFault | undefined;
  usesNames: boolean;
}

export function connectionChecks(deps: ConnectionChecksDependencies): ConnectionChecks {
  const { config, background, clock, faultOf, usesNames, ending } = deps;
  const findings = new Map<string, Finding>();
  let isChecking = false;
  /**
   * Returns the finding about a connection unless it has changed since: one that was mended must not be shown as
   * broken.
   */
  const findingOf = (one: Connection): Finding | undefined => {
    const finding = findings.get(one.id);
    return finding !== undefined && isDeepStrictEqual(finding.connection, one) ? finding : undefined;
  };
  const checkAll = async (due: Connection[]) => {
    const work = async () => {
      for (let one = due.shift(); one !== undefined && !ending.aborted; one = due.shift()) {
        const [fault, names] = await Promise.all([faultOf(one), usesNames(one)]);
        findings.set(one.id, { connection: one, checkedAt: clock(), fault, usesNames: names });
      }
    };
    await Promise.all(Array.from({ length: MAX_CONCURRENT }, work));
  };
  /** Returns the latest findings, and starts another check where they are missing or old. */
  const current = async (): Promise<Finding[]> => {
    const checked = (await config.connections()).filter(isInUse).slice(0, MAX_CONNECTIONS);
    const ids = new Set(checked.map(({ id }) => id));
    for (const id of findings.keys()) if (!ids.has(id)) findings.delete(id);
    const due = checked.filter(
      (one) => clock() - (findingOf(one)?.checkedAt ?? Number.NEGATIVE_INFINITY) >= VALID_MS,
    );
    if (due.length > 0 && !isChecking && !ending.aborted) {
      isChecking = true;
      const check = () =>
        checkAll(due).finally(() => {
          isChecking = false;
        });
      background.run('asking whether connections work', check);
    }
    return checked
      .flatMap((one) => findingOf(one) ?? [])
      .sort((a, b) => (a.connection.name < b.connection.name ? -1 : 1));
  };
  return {
    broken: async () =>
      (await current()).flatMap(({ connection: { name }, fault }) =>
        fault === undefined ? [] : [{ name, fault }],
      ),
    named: async () => (await current()).flatMap((one) => (one.usesNames ? [one.connection.name] : [])),
  };
}

const isInUse = ({ enabled_clients: clients, is_domain_connection: isForAll }: Connection): boolean =>
  clients.length > 0 || isForAll === true;
