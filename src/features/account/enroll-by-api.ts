// Begins and verifies the enrolment of a passkey, a password or a second factor by the My Account API.
import type { Context } from 'koa';
import type { z } from 'zod';
import type { MethodType } from '../../records/second-factors.ts';
import type { FactorDependencies } from '../factors/factor.ts';
import type { Actor } from './actor.ts';
import type { CallerDependencies } from './caller.ts';
import { type EnrollmentDependencies, startFactor, verifyFactor } from './enrollments.ts';
import { invalidField } from './errors.ts';
import type { createBody, verifyBody } from './parameter-schemas.ts';
import { type IdentitySelection, NEW_PASSKEY, startPasskey, verifyPasskey } from './passkeys.ts';
import { type PasswordDependencies, startPasswordChange, verifyPassword } from './passwords.ts';
import { PASSWORD_PREFIX } from './views.ts';

export interface AccountRoutesDependencies
  extends EnrollmentDependencies,
    CallerDependencies,
    PasswordDependencies {
  users: FactorDependencies['users'];
  config: FactorDependencies['config'];
}

type Deps = AccountRoutesDependencies;

/** Path of the authentication methods. */
export const METHODS_PATH = '/me/v1/authentication-methods';

/** Handles `POST /authentication-methods`. */
export async function handleCreate(
  deps: Deps,
  ctx: Context,
  { admitted: actor, body }: { admitted: Actor; body: z.output<typeof createBody> },
): Promise<void> {
  const { type, phone_number: phone, email, connection } = body;
  const selection = { connection, identity_user_id: body.identity_user_id ?? body.identity };
  if (type === 'password') {
    const { id, authSession, policy } = await startPasswordChange(deps, actor, selection);
    return answer(deps, ctx, id, { id, auth_session: authSession, policy });
  }
  const started = type === 'passkey' ? await createPasskey(deps, actor, selection) : undefined;
  const { id, ...created } = started ?? (await createFactor(deps, actor, type, phone ?? email));
  answer(deps, ctx, id, { ...(started === undefined && { id }), ...created });
}

function answer({ issuer }: Pick<Deps, 'issuer'>, ctx: Context, id: string, body: object): void {
  ctx.status = 201;
  ctx.set('Location', `${issuer}${METHODS_PATH.slice(1)}/${encodeURIComponent(id)}`);
  ctx.body = body;
}

async function createPasskey(deps: Deps, actor: Actor, selection: IdentitySelection) {
  const { authSession, options } = await startPasskey(deps, actor, selection);
  return { id: NEW_PASSKEY, auth_session: authSession, authn_params_public_key: options };
}

async function createFactor(deps: Deps, actor: Actor, type: MethodType, address: string | undefined) {
  const started = await startFactor(deps, actor, { type, address });
  const { id, authSession, options, barcodeUri, secret, recoveryCode } = started;
  return {
    id,
    auth_session: authSession,
    ...(options !== undefined && { authn_params_public_key: options }),
    ...(barcodeUri !== undefined && { barcode_uri: barcodeUri }),
    ...(secret !== undefined && { manual_input_code: secret }),
    ...(recoveryCode !== undefined && { recovery_code: recoveryCode }),
  };
}

/** Handles `POST /authentication-methods/:id/verify`. */
export async function handleVerify(
  deps: Deps,
  ctx: Context,
  { admitted: actor, body }: { admitted: Actor; body: z.output<typeof verifyBody> },
): Promise<void> {
  const { auth_session: authSession, otp_code: code = '', authn_response: response } = body;
  const { new_password: password } = body;
  const id = String(ctx.params.id);
  if (id.startsWith(PASSWORD_PREFIX)) {
    if (password === undefined) throw invalidField('new_password', 'Required');
    ctx.status = 201;
    ctx.body = await verifyPassword(deps, ctx, actor, { id, authSession, password });
    return;
  }
  if (id === NEW_PASSKEY && response === undefined) throw invalidField('authn_response', 'Required');
  const method =
    id === NEW_PASSKEY
      ? await verifyPasskey(deps, actor, { authSession, response: JSON.stringify(response) })
      : await verifyFactor(deps, actor, { id, authSession, code, response: response });
  ctx.status = 201;
  ctx.body = method;
}
