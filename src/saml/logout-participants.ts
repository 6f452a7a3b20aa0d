// Single logout at the other service providers of a session: what each is asked, and what its answer counts for.
import type { Context } from 'koa';
import { AuthError } from '../http/errors.ts';
import { epochSeconds } from '../runtime/clock.ts';
import { open, type Received } from './bindings.ts';
import { expectation, type SamlLogoutDependencies } from './logout.ts';
import { logoutRequest, readLogoutResponse } from './logout-messages.ts';
import { goOn, nextOf, runOf } from './logout-propagation.ts';
import { type Step, signed } from './logout-response.ts';
import type { ServiceProvider } from './service-provider.ts';
import { attribute, parseXml } from './xml.ts';

/**
 * The LogoutRequest that a run has come to. An application that lost its logout callback meanwhile is passed over.
 * @throws AuthError 400 when there is none, or no more.
 */
export async function askNext(
  deps: SamlLogoutDependencies,
  ctx: Context,
  provider: ServiceProvider,
  ticket: string,
): Promise<Step> {
  const { run, part, requestId: id } = await nextOf(deps, ctx, provider.clientId, ticket);
  const { logoutUrl: destination } = provider;
  if (destination === undefined) return { redirect: await goOn(deps, run, { isSuccess: false }) };
  const issuer = await deps.idp.entityId(provider.clientId);
  const frame = { id, issuer, now: epochSeconds(deps.wallClock), destination };
  const markup = logoutRequest(frame, structuredClone(part.name_id), part.session_index);
  return {
    message: {
      kind: 'request',
      markup: signed(deps.idp, provider, markup, id),
      relayState: undefined,
      location: destination,
    },
  };
}

/**
 * Takes the answer to a LogoutRequest of ours. One that is wrong counts as a failure, and the run goes on:
 * the user must not be stranded half-way.
 * @throws AuthError 400 when it answers nothing that waits.
 */
export async function takeLogoutResponse(
  deps: SamlLogoutDependencies,
  ctx: Context,
  provider: ServiceProvider,
  received: Received,
): Promise<Step> {
  const inResponseTo = attribute(parseXml(received.bytes), 'InResponseTo') ?? '';
  const run = await runOf(deps, ctx, provider.clientId, inResponseTo);
  const isSuccess = isSuccessful(deps, provider, received, {
    inResponseTo,
    issuer: run.waiting[0]?.issuer,
  });
  return { redirect: await goOn(deps, run, { isSuccess }) };
}

function isSuccessful(
  deps: SamlLogoutDependencies,
  provider: ServiceProvider,
  received: Received,
  expected: { inResponseTo: string; issuer: string | undefined },
): boolean {
  try {
    const answer = readLogoutResponse(open(received, provider.verifier), expectation(deps, provider));
    return (
      answer.isSuccess &&
      answer.inResponseTo === expected.inResponseTo &&
      (expected.issuer === undefined || answer.issuer === expected.issuer)
    );
  } catch (thrown) {
    if (thrown instanceof AuthError) return false;
    throw thrown;
  }
}
