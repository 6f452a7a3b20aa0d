// The id under which a login's run of actions is logged. It is chosen before they run, because the login's log
// event may be written earlier.
import type { KoaContextWithOIDC } from 'oidc-provider';
import type { Actions } from '../actions/actions.ts';

export interface LoginExecutions {
  /** That of a request, the same however often it is asked for; undefined where no action of logins is bound. */
  of(ctx: KoaContextWithOIDC): string | undefined;
}

/** Kept with a waiting request, so that actions that go on later have the same id. */
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
