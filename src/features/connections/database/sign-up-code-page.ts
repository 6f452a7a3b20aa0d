// The page at which the user types the codes of a sign-up.
import type { Context } from 'koa';
import type { Connection } from '../../../records/collections.ts';
import type { CodeKind } from '../../../records/database-options.ts';
import type { TypedAddresses } from '../../../users/signup.ts';
import { pageModel, type RequestPage, renderPage, stepPath } from '../../flow/request-page.ts';
import { asPasswordless, RESEND_SECONDS } from '../passwordless/session-routes.ts';
import type { PasswordPagesDependencies } from './form-dependencies.ts';

export const SIGN_UP_CODE_STEP = 'signup/code';

/** A sign-up that waits for codes, stored with its authorization request. */
export interface WaitingSignUp {
  /** The connection's name. */
  connection: string;
  /** In the form in which they are stored. */
  addresses: TypedAddresses;
  /** Undefined for a sign-up without a password. */
  passwordHash?: string | undefined;
  /** The kinds of address still to be proved; a code was sent to the first. */
  left: CodeKind[];
  proved: CodeKind[];
  /** The ticket that the code is valid with. */
  session: string;
}

/** The request and the connection of a sign-up that waits for codes. */
export interface SignUpRequest {
  page: RequestPage;
  connection: Connection;
}

/**
 * Answers with the page at which the next code of a sign-up is typed.
 * @param notice what the page says beside its form: an error (`alert`) or a notice (`said`), as keys of its texts.
 * @param status of the response.
 */
export async function showCode(
  deps: PasswordPagesDependencies,
  ctx: Context,
  { page, connection }: SignUpRequest,
  { left, proved, addresses }: Pick<WaitingSignUp, 'left' | 'proved' | 'addresses'>,
  notice: { alert?: string; said?: string | undefined } = {},
  status = 200,
): Promise<void> {
  const kind = left[0] ?? proved.at(-1) ?? 'email';
  const { strategy, digits, ttlSeconds } = asPasswordless(connection, kind, true);
  await renderPage(
    deps,
    ctx,
    page,
    'passwordless/code',
    {
      ...pageModel(page, SIGN_UP_CODE_STEP),
      ...notice,
      address: addresses[kind],
      channel: strategy.name,
      digits,
      minutes: Math.ceil(ttlSeconds / 60),
      resendUrl: stepPath(page.pending, `${SIGN_UP_CODE_STEP}/again`),
      resendSeconds: RESEND_SECONDS,
      backUrl: stepPath(page.pending, 'signup'),
    },
    status,
  );
}
