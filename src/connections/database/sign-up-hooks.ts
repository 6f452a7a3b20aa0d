// What the tenant's own code is told of who signs up on the page, and what the page says where it refuses them.
import type { Context } from 'koa';
import { askerOf } from '../../engine/action-event.ts';
import { anonymousSessionPart } from '../../engine/anonymous-transfer.ts';
import { transactionOf } from '../../engine/transaction-event.ts';
import type { RequestPage } from '../../flow/request-page.ts';
import { AuthError } from '../../http/errors.ts';
import { scopeValues } from '../../records/scope.ts';
import type { Config } from '../../tenant/config.ts';
import type { Asker } from '../../users/asker.ts';
import { RegistrationRefused } from '../../users/registration.ts';
import type { TypedAddresses } from '../../users/signup.ts';

/** Who signs up, for the tenant's own code. */
export function signUpAsker(
  config: Pick<Config, 'settings'>,
  ctx: Context,
  page: RequestPage,
  typed: TypedAddresses,
): Asker {
  const { clientId, params } = page.pending;
  const about = { protocol: 'oidc-basic-profile', scopes: scopeValues(params.scope) } as const;
  return {
    ...askerOf(ctx, clientId, typed),
    organization: page.organization,
    transaction: transactionOf(config, ctx, { ...about, params }),
    visitor: anonymousSessionPart(params),
  };
}

/** What the page says where the tenant's own code refuses a user, or cannot be asked. @throws whatever else was thrown */
export function refusedByCode(thrown: unknown): { status: number; alert: string; said?: string | undefined } {
  const refused = { status: 400, alert: 'signup.refused' };
  if (thrown instanceof RegistrationRefused) return { ...refused, said: thrown.said };
  if (!(thrown instanceof AuthError)) throw thrown;
  if (thrown.error === 'temporarily_unavailable') return { status: thrown.status, alert: 'login.busy' };
  if (thrown.status !== 400) throw thrown;
  return { ...refused, said: thrown.error_description };
}
