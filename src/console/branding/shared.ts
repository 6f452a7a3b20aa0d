// What the pages of branding have in common.
import type { Templates } from '../../delivery/templates.ts';
import type { OutgoingEmail, OutgoingSms } from '../../delivery/transport.ts';
import type { AskDependencies } from '../ask.ts';
import { CONSOLE } from '../callbacks.ts';
import type { ConsolePageDependencies } from '../page.ts';

export interface BrandingDependencies extends ConsolePageDependencies, AskDependencies {
  templates: Pick<Templates, 'draft'>;
  /** Sends an e-mail at once, once. @throws DeliveryError where the server does not take it. */
  sendEmail(message: OutgoingEmail): Promise<void>;
  /** The same of an SMS. */
  sendSms(message: OutgoingSms): Promise<void>;
  /** Counts a message to an address or number that may be anybody's. @throws AuthError 429 */
  limitDestination(destination: string): Promise<void>;
}

export const SECTION = 'branding';
export const PATH = `${CONSOLE}/branding` as const;

/** The languages of our pages, each by its own name, those that the tenant has first. */
export function languagesOf({ views, config }: Pick<BrandingDependencies, 'views' | 'config'>) {
  const { enabled_locales: enabled } = config.settings().tenant;
  const tags = [...new Set([...enabled.filter((tag) => views.locales.has(tag)), ...views.locales.keys()])];
  return tags.map((tag) => ({
    tag,
    name: new Intl.DisplayNames(tag, { type: 'language' }).of(tag) ?? tag,
    isEnabled: enabled.includes(tag),
  }));
}

/** The language that a page of branding is about: the one that is asked for, else the tenant's first. */
export function languageOf(deps: Pick<BrandingDependencies, 'views' | 'config'>, asked: unknown): string {
  const all = languagesOf(deps).map(({ tag }) => tag);
  return typeof asked === 'string' && all.includes(asked) ? asked : (all[0] ?? 'en');
}
