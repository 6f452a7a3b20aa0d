// What the tenant's own code learns about a sign-up on the hosted page, and what the page shows if that code refuses it.
import type { Context } from 'koa';
import { transactionOf } from '../../../../engine/base/transaction-event.ts';
import { requestContextOf } from '../../../../engine/login/login-event.ts';
import { anonymousSessionPart } from '../../../../engine/session/anonymous-sessions.ts';
import { AuthError } from '../../../../http/errors.ts';
import { scopeValues } from '../../../../records/clients/apis.ts';
import type { Config } from '../../../../tenant/config.ts';
import type { Asker } from '../../../../users/asker.ts';
import { RegistrationRefused } from '../../../../users/registration.ts';
import type { TypedAddresses } from '../../../../users/signup.ts';
import type { RequestPage } from '../../../flow/request-page.ts';

/** Returns the facts about a sign-up for the tenant's own code. */
export function signUpAsker(
  config: Pick<Config, 'settings'>,
  ctx: Context,
  page: RequestPage,
  typed: TypedAddresses,
): Asker {
  const { clientId, params } = page.waiting;
  const request = { protocol: 'oidc-basic-profile', scopes: scopeValues(params.scope) } as const;
  return {
    ...requestContextOf(ctx, clientId, typed),
    organization: page.organization,
    transaction: transactionOf(config, ctx, { ...request, params }),
    visitor: anonymousSessionPart(params),
  };
}

/** Returns what the page shows if the tenant's own code refuses a user or failed. @throws any other error, unchanged. */
export function serverLoginCodeRefusal(thrown: unknown): {
  status: number;
  alert: string;
  said?: string | undefined;
} {
  const refusal = { status: 400, alert: 'signup.refused' };
  if (thrown instanceof RegistrationRefused) return { ...refusal, said: thrown.userMessage };
  if (!(thrown instanceof AuthError)) throw thrown;
  if (thrown.error === 'temporarily_unavailable') return { status: thrown.status, alert: 'login.busy' };
  if (thrown.status !== 400) throw thrown;
  return { ...refusal, said: thrown.error_description };
}
