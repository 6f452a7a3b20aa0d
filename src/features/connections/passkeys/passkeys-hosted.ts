// The route by which the login page logs in with a passkey.
import type { Context } from 'koa';
import type { Messages } from '../../../capabilities/delivery/delivery-messages.ts';
import type { RateLimits } from '../../../capabilities/protection/rate-limit.ts';
import { readAssertion } from '../../../capabilities/webauthn/ceremonies.ts';
import { serverRelyingParty } from '../../../capabilities/webauthn/relying-party.ts';
import { formFields } from '../../../http/server/body.ts';
import { PAGE, type RouteDeclarations } from '../../../http/server/router.ts';
import { firstCode, passkeyOptions, passwordUse } from '../../../records/database-options.ts';
import type { Events } from '../../../tenant/events.ts';
import type { Users } from '../../../users/users.ts';
import { userEvents } from '../../../users/users-declaration.ts';
import { waitsForLogin } from '../../flow/finish.ts';
import type { ShowNext } from '../../flow/flow-routes.ts';
import { acceptsConnection, openRequestPage, type RequestPage } from '../../flow/request-page.ts';
import type { PasswordFormDependencies } from '../database/base/form-dependencies.ts';
import { renderLogin } from '../database/database-hosted.ts';
import { showCodeForm } from '../passwordless/passwordless-hosted.ts';
import { usableConnections } from '../resolve.ts';
import { type EnrollmentDependencies, isFromOtherDevice, PASSKEY_STEP } from './enrollment.ts';
import { type PasskeyDependencies, verifyPasskey } from './passkeys.ts';
import { passkeyAuthentication } from './passkeys-grant.ts';
import { takeSession } from './passkeys-session.ts';

export interface PasskeyPagesDependencies
  extends PasswordFormDependencies,
    PasskeyDependencies,
    EnrollmentDependencies {
  events: Pick<Events, 'record'>;
  messages: Pick<Messages, 'post'>;
  rateLimits: Pick<RateLimits, 'spend'>;
  showNext: ShowNext;
  users: Users;
}

export const passkeyPages: RouteDeclarations<PasskeyPagesDependencies> = {
  [`POST /u/:uid/${PASSKEY_STEP}` as const]: {
    ...PAGE,
    handle: async (deps, ctx) => {
      const page = await openRequestPage(deps, ctx);
      deps.csrf.verify(ctx);
      if (!waitsForLogin(page.waiting)) return deps.showNext(ctx, page);
      await logIn(deps, ctx, page);
    },
  },
};

/** Logs in with a passkey of any connection that the request allows. */
async function logIn(deps: PasskeyPagesDependencies, ctx: Context, page: RequestPage): Promise<void> {
  const { waiting } = page;
  const { code, session: authSession } = formFields(ctx, 'code', 'session');
  const ceremony = await takeSession(deps, authSession, waiting.clientId);
  if (ceremony?.session.request !== waiting.uid) return deps.showNext(ctx, page);
  const usable = await usableConnections(deps.config, waiting.clientId, waiting.params.organization);
  const accepted = usable.filter(
    ({ connection }) => acceptsConnection(waiting, connection) && passkeyOptions(connection) !== undefined,
  );
  const assertion = readAssertion(code);
  const verified =
    assertion &&
    (await verifyPasskey(deps, serverRelyingParty(deps, ceremony.session.at), assertion, ceremony.challenge));
  const connection = accepted.find(
    ({ connection: { name } }) => name === verified?.passkey.connection,
  )?.connection;
  if (assertion === undefined || verified === undefined || connection === undefined)
    return showFailure(deps, ctx, page, ceremony.session.connection);
  const { user, credentialVersion } = verified;
  const login = {
    userId: user.id,
    credentialVersion,
    connection: connection.name,
    ip: ctx.ip,
    ...passkeyAuthentication(deps),
  };
  isFromOtherDevice.set(ctx, assertion.authenticatorAttachment === 'cross-platform');
  await deps.finish.login(ctx, waiting, login);
}

async function showFailure(
  deps: PasskeyPagesDependencies,
  ctx: Context,
  page: RequestPage,
  name: string,
): Promise<void> {
  const { client_id: clientId } = page.client;
  deps.events.record({
    type: userEvents.fp,
    client_id: clientId,
    connection: name,
    ip: ctx.ip,
    description: 'passkey',
  });
  const connection = await deps.config.connection(name);
  if (connection === undefined) return deps.showNext(ctx, page);
  const alert = 'passkey.wrong';
  const kind = passwordUse(connection).logsIn ? undefined : firstCode(connection);
  if (kind !== undefined) return showCodeForm(deps, ctx, page, { record: connection, kind }, alert);
  await renderLogin(deps, ctx, page, connection, { username: '', alert }, 400);
}
