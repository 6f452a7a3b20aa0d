// The programs of the home page: for each framework, filled in with an application that the tenant file declares.
import type { Snippet } from '../../capabilities/quickstarts/snippet.ts';
import { STARTERS, type Starter, starterValues } from '../../capabilities/quickstarts/starters.ts';
import { isPattern } from '../../records/clients/allowed-urls.ts';
import type { Client } from '../../records/collections.ts';

export interface FirstProgram {
  title: string;
  /** The application whose values it has. */
  clientId: string;
  /** Whether it reads the secret of that application from the environment. */
  hasSecret: boolean;
  snippets: Snippet[];
}

type Application = Pick<Client, 'client_id' | 'app_type' | 'callbacks'>;

/** Returns the programs of the frameworks whose SDK can return to one of the applications. */
export function firstPrograms(applications: readonly Application[], issuer: string): FirstProgram[] {
  return STARTERS.flatMap((starter) => {
    const { title, shape, programs } = starter;
    if (shape !== 'spa' && shape !== 'regular_web') return [];
    const found = applications
      .filter((one) => one.app_type === shape)
      .flatMap((one) => {
        const callback = callbackFor(starter, one.callbacks);
        return callback === undefined ? [] : [{ clientId: one.client_id, callback }];
      })[0];
    if (found === undefined) return [];
    const { clientId, callback } = found;
    const values = starterValues(starter, { origin: new URL(callback).origin, clientId, issuer });
    // The API of the example may not be there.
    const own = { ...values, callback, audience: undefined };
    return [
      {
        title,
        clientId,
        hasSecret: shape === 'regular_web',
        snippets: programs.map((program) => program(own)),
      },
    ];
  });
}

/** Returns the callback with the path of a framework's SDK: the one at its usual port, if there are several. */
function callbackFor({ callbackPath, port }: Starter, callbacks: readonly string[]): string | undefined {
  const fitting = callbacks.flatMap((text) => {
    const url = URL.parse(text);
    return url !== null && !isPattern(text) && url.pathname === (callbackPath || '/') ? [{ text, url }] : [];
  });
  return (fitting.find(({ url }) => url.port === String(port)) ?? fitting[0])?.text;
}
