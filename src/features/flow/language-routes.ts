// The choice of a language in the menu of a page.
import type { Context } from 'koa';
import { AuthError } from '../../http/errors.ts';
import { canonicalTag, rememberLanguage } from '../../http/languages.ts';
import { formFields } from '../../http/server/body.ts';
import { isSameOrigin } from '../../http/server/csrf.ts';
import { PAGE, type RouteDeclarations } from '../../http/server/router.ts';
import type { Config } from '../../tenant/config.ts';
import { enabledLocales } from '../../tenant/languages.ts';

export interface LanguageDependencies {
  config: Config;
  baseUrl: string;
}

export const languageRoutes: RouteDeclarations<LanguageDependencies> = {
  'POST /u/language': { ...PAGE, handle: chooseLanguage },
};

// docs/understand/decisions/login-pages.md#a-menu-of-languages-is-shown-on-pages-that-can-be-loaded-again
/**
 * Remembers the language, and leads back to the page. The form has no token, because pages have it that have no other form; the
 * headers that browsers send with each post say where it comes from.
 */
async function chooseLanguage({ config, baseUrl }: LanguageDependencies, ctx: Context): Promise<void> {
  const { origin } = new URL(baseUrl);
  if (!isSameOrigin(ctx, origin)) throw new AuthError(403, 'invalid_request', 'Another site sent this form.');
  const { language = '', back = '' } = formFields(ctx, 'language', 'back');
  const { tenant } = config.settings();
  if (tenant.language_menu === true && enabledLocales(tenant).includes(language))
    rememberLanguage(ctx, canonicalTag(language) ?? language);
  ctx.status = 303;
  ctx.redirect(localPath(back, origin));
}

/**
 * Returns a path and query of this server; the root for anything else. A path may begin with `//` only once it is resolved, as that
 * of `//<this host>//<another host>` does, and browsers read it as the name of a host then (RFC 3986 §4.2).
 */
function localPath(path: string, origin: string): string {
  const url = URL.parse(path, origin);
  const isLocal = path.startsWith('/') && url?.origin === origin && !url.pathname.startsWith('//');
  return isLocal ? `${url.pathname}${url.search}` : '/';
}
