// /account: the profile.
import type { Context } from 'koa';
import { z } from 'zod';
import { languageNames } from '../../../http/languages.ts';
import { formFields } from '../../../http/server/body.ts';
import type { RouteDeclarations } from '../../../http/server/router.ts';
import { enabledLocales } from '../../../tenant/languages.ts';
import type { User } from '../../../users/user.ts';
import type { FactorDependencies } from '../../factors/factor.ts';
import { accountEvents } from '../account-declaration.ts';
import { ACCOUNT } from './account-callbacks.ts';
import {
  type AccountPageDependencies,
  back,
  declareAccountPage,
  formRoute,
  pageRoute,
  renderAccount,
} from './account-page.ts';
import type { PageActor } from './account-session.ts';
import { editableOf } from './editable.ts';
import { type NoticeDependencies, recordChange } from './notices.ts';
import { editsPhone } from './phone-change.ts';

export interface ProfileDependencies
  extends AccountPageDependencies,
    NoticeDependencies,
    Pick<FactorDependencies, 'factors'> {}

const text = (maxLength: number) => z.string().trim().max(maxLength);

/**
 * The members that users change themselves, with the limits of the Management API. An empty value removes a member.
 */
const profile = z.object({
  name: text(300),
  given_name: text(150),
  family_name: text(150),
  nickname: text(300),
  picture: z.union([z.literal(''), z.url({ protocol: /^https$/ }).max(2048)]),
  locale: z.union([
    z.literal(''),
    z
      .string()
      .regex(/^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$/)
      .max(64),
  ]),
});

type Profile = z.output<typeof profile>;
const MEMBERS = Object.keys(profile.shape) as (keyof Profile)[];

export const profileRoutes: RouteDeclarations<ProfileDependencies> = {
  [`GET ${ACCOUNT}`]: pageRoute('', (deps, ctx, actor) => showProfile(deps, ctx, actor)),
  [`POST ${ACCOUNT}`]: formRoute('', { act: 'profile' }, saveProfile),
};

interface OwnProfileModel {
  values: Profile & { email?: string; phone?: string };
  faults: Faults;
  editsProfile: boolean;
  editsEmail: boolean;
  email: { address: string | undefined; isVerified: boolean | undefined };
  phone: { number: string | undefined; isVerified: boolean };
  editsPhone: boolean;
  /** The number that a code was sent to. */
  phoneAsked: string | undefined;
  username: string | undefined;
  /** Where the profile is edited, when not here. */
  provider: string | undefined;
  locales: { tag: string; name: string }[];
}

export const OWN_PROFILE_PAGE = declareAccountPage<OwnProfileModel>('own/profile');

/** @param values what was typed, when the form is shown again. */
export async function showProfile(
  deps: ProfileDependencies,
  ctx: Context,
  actor: PageActor,
  {
    values = {},
    faults = {},
    alert,
    phoneAsked,
  }: {
    values?: Partial<Profile> & { email?: string; phone?: string };
    faults?: Faults;
    alert?: string;
    /** The number that a code was sent to. */
    phoneAsked?: string;
  } = {},
): Promise<void> {
  const { user } = actor;
  const editable = await editableOf(deps, user.id);
  const { editsProfile = false, editsEmail = false, connection } = editable ?? {};
  const model = {
    values: { ...valuesOf(user), ...values },
    faults,
    editsProfile,
    editsEmail,
    email: { address: user.email, isVerified: user.email_verified },
    phone: { number: user.phone_number, isVerified: user.phone_verified === true },
    editsPhone: await editsPhone(deps, user.id),
    phoneAsked,
    username: user.username,
    provider: connection?.display_name ?? connection?.name,
    locales: [...languageNames(enabledLocales(deps.config.settings().tenant))].map(([tag, name]) => ({
      tag,
      name,
    })),
  };
  const status = alert === undefined ? 200 : 400;
  await renderAccount(deps, ctx, actor, { page: OWN_PROFILE_PAGE, section: '', model }, { status, alert });
}

/** Message keys by field. */
type Faults = Partial<Record<keyof Profile | 'email' | 'phone' | 'code', string>>;

function valuesOf(user: User): Profile {
  return Object.fromEntries(MEMBERS.map((name) => [name, user[name] ?? ''])) as Profile;
}

async function saveProfile(deps: ProfileDependencies, ctx: Context, actor: PageActor): Promise<void> {
  const editable = await editableOf(deps, actor.user.id);
  if (editable?.editsProfile !== true) return back(ctx, '');
  const values = formFields(ctx, ...MEMBERS);
  const parsed = profile.safeParse(values);
  if (!parsed.success) {
    const wrong = parsed.error.issues.map(({ path }) => path[0] as keyof Profile);
    const faults = Object.fromEntries(wrong.map((name) => [name, FAULTS[name] ?? 'own.profile.tooLong']));
    return showProfile(deps, ctx, actor, { values, faults, alert: 'own.profile.failed' });
  }
  const patch = Object.fromEntries(MEMBERS.map((name) => [name, parsed.data[name] || undefined]));
  await deps.users.update(actor.user.id, patch);
  recordChange(deps, ctx, actor, { type: accountEvents.account_changed, description: 'profile' });
  back(ctx, '', 'saved');
}

const FAULTS: Faults = { picture: 'own.profile.noAddress', locale: 'own.profile.noLocale' };
