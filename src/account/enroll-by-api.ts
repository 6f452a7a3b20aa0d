// Begins and verifies the enrolment of a passkey, a password or a second factor by the My Account API.
import type { Context } from 'koa';
import type { z } from 'zod';
import type { FactorDependencies } from '../factors/factor.ts';
import type { MethodType } from '../records/second-factors.ts';
import type { Actor } from './actor.ts';
import type { CallerDependencies } from './caller.ts';
import { beginFactor, type EnrollmentDependencies, verifyFactor } from './enrollments.ts';
import { invalidField } from './errors.ts';
import type { createBody, verifyBody } from './parameter-schemas.ts';
import { beginPasskey, NEW_PASSKEY, verifyPasskey, type WantedIdentity } from './passkeys.ts';
import { beginPassword, type PasswordDependencies, verifyPassword } from './passwords.ts';
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
export const METHODS = '/me/v1/authentication-methods';

/** Handles `POST /authentication-methods`. */
export async function handleCreate(
  deps: Deps,
  ctx: Context,
  actor: Actor,
  body: z.output<typeof createBody>,
): Promise<void> {
  const { type, phone_number: phone, email, connection } = body;
  const wanted = { connection, identity_user_id: body.identity_user_id ?? body.identity };
  if (type === 'password') {
    const { id, authSession, policy } = await beginPassword(deps, actor, wanted);
    return answer(deps, ctx, id, { id, auth_session: authSession, policy });
  }
  const begun = type === 'passkey' ? await createPasskey(deps, actor, wanted) : undefined;
  const { id, ...created } = begun ?? (await createFactor(deps, actor, type, phone ?? email));
  answer(deps, ctx, id, { ...(begun === undefined && { id }), ...created });
}

function answer({ issuer }: Pick<Deps, 'issuer'>, ctx: Context, id: string, body: object): void {
  ctx.status = 201;
  ctx.set('Location', `${issuer}${METHODS.slice(1)}/${encodeURIComponent(id)}`);
  ctx.body = body;
}

async function createPasskey(deps: Deps, actor: Actor, wanted: WantedIdentity) {
  const { authSession, options } = await beginPasskey(deps, actor, wanted);
  return { id: NEW_PASSKEY, auth_session: authSession, authn_params_public_key: options };
}

async function createFactor(deps: Deps, actor: Actor, type: MethodType, address: string | undefined) {
  const begun = await beginFactor(deps, actor, { type, address });
  const { id, authSession, options, barcodeUri, secret, recoveryCode } = begun;
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
  actor: Actor,
  body: z.output<typeof verifyBody>,
): Promise<void> {
  const { auth_session: authSession, otp_code: code = '', authn_response: answered } = body;
  const { new_password: password } = body;
  const id = String(ctx.params.id);
  if (id.startsWith(PASSWORD_PREFIX)) {
    if (password === undefined) throw invalidField('new_password', 'Required');
    ctx.status = 201;
    ctx.body = await verifyPassword(deps, ctx, actor, { id, authSession, password });
    return;
  }
  if (id === NEW_PASSKEY && answered === undefined) throw invalidField('authn_response', 'Required');
  const made =
    id === NEW_PASSKEY
      ? await verifyPasskey(deps, actor, { authSession, answered: JSON.stringify(answered) })
      : await verifyFactor(deps, actor, { id, authSession, code, answered });
  ctx.status = 201;
  ctx.body = made;
}
