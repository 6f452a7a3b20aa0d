// Forms of a phone number: the request, and the code.
import type { Context } from 'koa';
import { formFields } from '../../../http/body.ts';
import type { RouteDeclarations } from '../../../http/router.ts';
import type { FactorDependencies } from '../../factors/factor.ts';
import { accountEvents } from '../declaration.ts';
import { ACCOUNT } from './callbacks.ts';
import { notifyUser, recordChange } from './notices.ts';
import { back, formRoute } from './page.ts';
import { editsPhone, provePhone, sendPhoneCode } from './phone-change.ts';
import { type ProfileDependencies, showProfile } from './profile.ts';
import type { PageActor } from './session.ts';

interface PhonePageDependencies extends ProfileDependencies, FactorDependencies {}

// docs/decisions/console-account.md#a-phone-number-on-the-account-page-is-no-second-factor
/** The routes of a phone number. Both require a fresh login, so that nobody at an open browser can add a number. */
export const phoneRoutes: RouteDeclarations<PhonePageDependencies> = {
  [`POST ${ACCOUNT}/profile/phone`]: formRoute('', { act: 'phone' }, requestPhone),
  [`POST ${ACCOUNT}/profile/phone/code`]: formRoute('', { act: 'phone' }, prove),
};

async function requestPhone(deps: PhonePageDependencies, ctx: Context, actor: PageActor): Promise<void> {
  if (!(await editsPhone(deps, actor.user.id))) return back(ctx, '');
  const { phone } = formFields(ctx, 'phone');
  const phoneAsked = await sendPhoneCode(deps, actor, phone);
  if (phoneAsked !== undefined) return showProfile(deps, ctx, actor, { phoneAsked });
  const faults = { phone: 'own.phone.none' };
  await showProfile(deps, ctx, actor, { values: { phone }, faults, alert: 'own.profile.failed' });
}

async function prove(deps: PhonePageDependencies, ctx: Context, actor: PageActor): Promise<void> {
  if (!(await editsPhone(deps, actor.user.id))) return back(ctx, '');
  const { code, phone } = formFields(ctx, 'code', 'phone');
  const outcome = await provePhone(deps, actor, code);
  if (outcome !== 'set') {
    const faults = { code: outcome === 'taken' ? 'own.phone.taken' : 'own.phone.wrong' };
    return showProfile(deps, ctx, actor, { phoneAsked: phone, faults, alert: 'own.profile.failed' });
  }
  recordChange(deps, ctx, actor, { type: accountEvents.account_changed, description: 'phone number' });
  await notifyUser(deps, ctx, actor.user, 'phone');
  back(ctx, '', 'saved');
}
