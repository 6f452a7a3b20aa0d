// The id of the execution that the actions of a login are: known before they run, since the event of the login may be
// recorded before.
import type { KoaContextWithOIDC } from 'oidc-provider';
import type { Actions } from '../actions/actions.ts';

export interface LoginExecutions {
  /** That of a request, the same however often it is asked for; undefined where no action of logins is bound. */
  of(ctx: KoaContextWithOIDC): string | undefined;
}

/** What is kept with a request that waits for its user: those that go on are the same execution. */
interface Kept {
  execution?: string;
}

/** The executions of one engine's logins. */
export function loginExecutions(actions: Pick<Actions, 'isBound' | 'newExecution'>): LoginExecutions {
  const ids = new WeakMap<object, string>();
  return {
    of: ({ oidc }) => {
      if (!actions.isBound('post-login')) return undefined;
      const result = oidc.result as Kept | undefined;
      const id = ids.get(oidc) ?? result?.execution ?? actions.newExecution();
      ids.set(oidc, id);
      if (result !== undefined) result.execution = id;
      return id;
    },
  };
}
