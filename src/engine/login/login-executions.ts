// The ids under which runs of a login's actions are logged. An id is chosen before the actions run, because the log
// event of the login may be written earlier.
import type { KoaContextWithOIDC } from 'oidc-provider';
import type { Actions } from '../../capabilities/actions/actions.ts';

export interface LoginExecutions {
  /** Returns the id of a request's run, the same each time; undefined when no action of logins is bound. */
  of(ctx: KoaContextWithOIDC): string | undefined;
}

/** Stored with a waiting request, so that actions that continue later have the same id. */
interface StoredExecution {
  execution?: string;
}

/** Makes the ids for one engine's logins. */
export function loginExecutions(actions: Pick<Actions, 'isBound' | 'newExecution'>): LoginExecutions {
  const ids = new WeakMap<object, string>();
  return {
    of: ({ oidc }) => {
      if (!actions.isBound('post-login')) return undefined;
      const result = oidc.result as StoredExecution | undefined;
      const id = ids.get(oidc) ?? result?.execution ?? actions.newExecution();
      ids.set(oidc, id);
      if (result !== undefined) result.execution = id;
      return id;
    },
  };
}
