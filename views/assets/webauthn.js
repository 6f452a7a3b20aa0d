// Asks the browser for a security key or a passkey, and posts what it gives. What it is asked for stands in the form.

const FAULTS = {
  NotAllowedError: 'cancelled',
  AbortError: 'cancelled',
  InvalidStateError: 'known',
  NotSupportedError: 'unsupported',
  ConstraintError: 'unsupported',
  SecurityError: 'refused',
};

/** @returns the credential as JSON. @throws DOMException as WebAuthn Level 3 §5.1.3 and §5.1.4 say. */
async function ask(kind, options) {
  const { credentials } = navigator;
  const credential =
    kind === 'create'
      ? await credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) })
      : await credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) });
  return JSON.stringify(credential);
}

const isSupported = () =>
  typeof PublicKeyCredential === 'function' &&
  typeof PublicKeyCredential.parseCreationOptionsFromJSON === 'function' &&
  typeof PublicKeyCredential.parseRequestOptionsFromJSON === 'function';

function prepare(form) {
  const button = form.querySelector('button');
  const fault = document.getElementById('key-fault');
  const show = (name) => {
    fault.querySelector('p').textContent = form.dataset[name];
    fault.hidden = false;
    fault.focus();
  };
  if (!isSupported()) return show('unsupported');
  button.hidden = false;
  button.addEventListener('click', async (event) => {
    event.preventDefault();
    button.disabled = true;
    fault.hidden = true;
    try {
      form.elements.code.value = await ask(form.dataset.webauthn, JSON.parse(form.dataset.options));
      form.requestSubmit();
    } catch (error) {
      show(FAULTS[error.name] ?? 'failed');
      button.disabled = false;
    }
  });
  // A page that comes back from the browser's memory has a question that was answered.
  addEventListener('pageshow', ({ persisted }) => {
    if (persisted) location.reload();
  });
}

for (const form of document.querySelectorAll('form[data-webauthn]')) prepare(form);
