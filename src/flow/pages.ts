// Models of the consent and account pages.
import type { Config } from '../tenant/config.ts';
import { nameOf } from '../users/profile.ts';
import type { User } from '../users/user.ts';
import { type PageModel, pageModel, type RequestPage, stepPath } from './request-page.ts';

interface ConsentPage extends PageModel {
  scopes: { key?: string; text?: string; api?: string }[];
  user: string;
}

interface AccountPage extends PageModel {
  user: string;
  loginUrl: string;
}

/** What the user is asked to allow the application. */
export async function consentPage(
  page: RequestPage,
  config: Config,
  user: User | undefined,
): Promise<ConsentPage> {
  const { oidcScopes, apis } = page.pending.missing;
  const apiScopes = await Promise.all(
    Object.entries(apis).map(async ([audience, scopes]) => {
      const api = await config.resourceServer(audience);
      return scopes.map((scope) => ({
        text: api?.scopes.find(({ value }) => value === scope)?.description ?? scope,
        api: api?.name ?? audience,
      }));
    }),
  );
  return {
    ...pageModel(page, 'consent'),
    scopes: [...oidcScopes.map((scope) => ({ key: `scope.${scope}` })), ...apiScopes.flat()],
    user: nameOf(user),
  };
}

/** Asks whether to continue as the logged-in user. */
export function accountPage(page: RequestPage, user: User | undefined): AccountPage {
  return { ...pageModel(page, 'account'), user: nameOf(user), loginUrl: stepPath(page.pending, 'login') };
}
