// Which connections nobody can log in with now. Providers are asked in the background and seldom: no page waits for them.
import type { Connection } from '../../records/collections.ts';
import type { Background } from '../../runtime/background.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Config } from '../../tenant/config.ts';

interface BrokenConnection {
  name: string;
  why: string;
}

export interface ConnectionChecks {
  /** What was found the last time; asks anew where that was long ago. */
  broken(): readonly BrokenConnection[];
}

interface ConnectionChecksDependencies {
  config: Pick<Config, 'connections'>;
  background: Background;
  clock: Clock;
  faultOf(connection: Connection): Promise<string | undefined>;
  /** Aborted when the server is about to end. */
  ending: AbortSignal;
}

/** How long an answer is good, milliseconds; how many are asked at once, and at most. */
const GOOD = 600_000;
const AT_ONCE = 4;
const MOST = 200;

/** The checks of a tenant. */
export function connectionChecks(deps: ConnectionChecksDependencies): ConnectionChecks {
  const { config, background, clock, faultOf, ending } = deps;
  let found: readonly BrokenConnection[] = [];
  let askedAt = Number.NEGATIVE_INFINITY;
  const ask = async () => {
    const inUse = (await config.connections()).filter(
      ({ enabled_clients: clients, is_domain_connection: isForAll }) =>
        clients.length > 0 || isForAll === true,
    );
    const left = inUse.slice(0, MOST);
    const broken: BrokenConnection[] = [];
    const work = async () => {
      for (let one = left.shift(); one !== undefined && !ending.aborted; one = left.shift()) {
        const why = await faultOf(one);
        if (why !== undefined) broken.push({ name: one.name, why });
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    found = broken.sort((a, b) => (a.name < b.name ? -1 : 1));
  };
  return {
    broken: () => {
      if (clock() - askedAt >= GOOD && !ending.aborted) {
        askedAt = clock();
        background.run('asking whether connections work', ask);
      }
      return found;
    },
  };
}
