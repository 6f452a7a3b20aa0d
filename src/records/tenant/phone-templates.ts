// The tenant's own texts of messages to phones, in the hosted service's form: one template for each type of message.
import { z } from 'zod';

/** The kind of the documents that hold them. */
export const PHONE_TEMPLATE = 'branding/phone/templates';

/** The hosted service's types of messages to phones. Here, only the first two are sent. */
export const PHONE_TEMPLATE_TYPES = [
  'otp_verify',
  'otp_enroll',
  'change_password',
  'blocked_account',
  'password_breach',
] as const;
export type PhoneTemplateType = (typeof PHONE_TEMPLATE_TYPES)[number];

/** The most characters of a text, which may have one for each language. */
const MAX_TEXT = 10_000;

const text = z.string().max(MAX_TEXT).nullish();
const content = {
  syntax: z.string().max(50).nullish(),
  /** The number that the message comes from; the provider's default without it. */
  from: z.string().max(50).nullish(),
};

export const phoneTemplateSchema = z.looseObject({
  id: z.string().min(1).max(255).optional(),
  type: z.string().min(1).max(255),
  disabled: z.boolean().optional(),
  /** What the hosted service says of it, and tools send back. */
  channel: z.string().optional(),
  customizable: z.boolean().optional(),
  tenant: z.string().optional(),
  content: z.looseObject({ ...content, body: z.looseObject({ text, voice: text }).nullish() }).nullish(),
});

/** The members that the Management API takes. */
export const phoneTemplateContent = z.strictObject({
  ...content,
  body: z.strictObject({ text, voice: text }).optional(),
});

/** What a message is made from. */
export interface PhoneTemplate {
  text: string | undefined;
  from: string | undefined;
  isDisabled: boolean;
}

/** Returns the templates by type. */
export function phoneTemplatesOf(
  documents: readonly { readonly body: Readonly<Record<string, unknown>> }[],
): ReadonlyMap<string, PhoneTemplate> {
  return new Map(
    documents.map(({ body: { type, disabled, content } }) => {
      const { from, body } = Object(content) as Readonly<Record<string, unknown>>;
      const { text } = Object(body) as Readonly<Record<string, unknown>>;
      return [String(type), { text: textOf(text), from: textOf(from), isDisabled: disabled === true }];
    }),
  );
}

const textOf = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined);
