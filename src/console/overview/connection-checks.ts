// Finds connections with which nobody can log in. Providers are asked in the background and seldom, so that no page
// waits for them.
import { isDeepStrictEqual } from 'node:util';
import type { ProviderFault } from '../../connections/provider-checks.ts';
import type { Connection } from '../../records/collections.ts';
import type { Background } from '../../runtime/background.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Config } from '../../tenant/config.ts';

interface BrokenConnection {
  name: string;
  why: ProviderFault;
}

export interface ConnectionChecks {
  /**
   * Returns the last findings about connections that have not changed since. Starts another check in the background
   * when findings are missing or old.
   */
  broken(): Promise<readonly BrokenConnection[]>;
}

interface ConnectionChecksDependencies {
  config: Pick<Config, 'connections'>;
  background: Background;
  clock: Clock;
  faultOf(connection: Connection): Promise<ProviderFault | undefined>;
  /** Aborted when the server stops. */
  ending: AbortSignal;
}

/** How long a finding is valid, milliseconds; the number of concurrent checks; the maximum number of connections. */
const GOOD = 600_000;
const AT_ONCE = 4;
const MOST = 200;

/** A finding, with the connection as it was then. */
interface Answer {
  as: Connection;
  at: number;
  why: ProviderFault | undefined;
}

/** Creates the checks of a tenant. */
export function connectionChecks(deps: ConnectionChecksDependencies): ConnectionChecks {
  const { config, background, clock, faultOf, ending } = deps;
  const answers = new Map<string, Answer>();
  let isAsking = false;
  /**
   * Returns the finding about a connection unless it has changed since: one that was mended must not be shown as
   * broken.
   */
  const answerOf = (one: Connection): Answer | undefined => {
    const answer = answers.get(one.id);
    return answer !== undefined && isDeepStrictEqual(answer.as, one) ? answer : undefined;
  };
  const ask = async (due: Connection[]) => {
    const work = async () => {
      for (let one = due.shift(); one !== undefined && !ending.aborted; one = due.shift()) {
        const why = await faultOf(one);
        answers.set(one.id, { as: one, at: clock(), why });
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  };
  return {
    broken: async () => {
      const looked = (await config.connections()).filter(isInUse).slice(0, MOST);
      const ids = new Set(looked.map(({ id }) => id));
      for (const id of answers.keys()) if (!ids.has(id)) answers.delete(id);
      const due = looked.filter((one) => clock() - (answerOf(one)?.at ?? Number.NEGATIVE_INFINITY) >= GOOD);
      if (due.length > 0 && !isAsking && !ending.aborted) {
        isAsking = true;
        const asked = () =>
          ask(due).finally(() => {
            isAsking = false;
          });
        background.run('asking whether connections work', asked);
      }
      return looked
        .flatMap((one) => {
          const why = answerOf(one)?.why;
          return why === undefined ? [] : [{ name: one.name, why }];
        })
        .sort((a, b) => (a.name < b.name ? -1 : 1));
    },
  };
}

const isInUse = ({ enabled_clients: clients, is_domain_connection: isForAll }: Connection): boolean =>
  clients.length > 0 || isForAll === true;
