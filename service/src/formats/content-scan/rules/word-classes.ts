import type { WordClasses } from "../phrases.ts";

/** In lower case without accents and apostrophes. Where a language of many sellers says the same, its words are in the class, too. */
export const wordClasses = {
  NOT: `not dont never cannot cant mustnt shouldnt wont doesnt didnt without avoid refrain nobody neither nor
    nicht nie niemals nichts kein keine no nunca jamas pas jamais rien nao non mai не никогда`,
  DISCLOSE: `tell telling inform informing notify notifying mention mentioning reveal revealing disclose disclosing warn
    warning alert alerting admit acknowledge announce confess divulge
    sage sag sagen erwahne erwahnen verrate verraten informiere informieren mitteilen erzahle zeige
    digas diga informes menciones reveles cuentes avises dis dites mentionne mentionnez revele revelez
    conte mencione revele avise dire dica menzionare rivelare informare
    говори говорите сообщай сообщайте упоминай рассказывай раскрывай`,
  USER: `user users human humans customer customers client clients buyer buyers operator operators person people anyone
    anybody reader readers developer developers reviewer reviewers moderator moderators visitor visitors recipient victim
    nutzer nutzern benutzer benutzern anwender kunde kunden kundin usuario usuarios cliente clientes utilisateur
    utilisateurs lutilisateur utente utenti allutente utilizador пользователю пользователям пользователя клиенту`,
  LEARN: "know learn notice notices realize realise realizes discover discovers suspect suspects",
  CONCEAL: "hide hiding conceal concealing suppress suppressing mask disguise obscure bury withhold omit",
  COVERTLY: `silently secretly covertly quietly stealthily discreetly surreptitiously invisibly subtly inconspicuously
    unnoticed`,
  ALTER: `add insert inject embed append include replace modify change redirect send upload forward transmit exfiltrate
    copy collect record log track store save install download run execute delete steal capture share promote harvest`,
  DECEIVE: "lie lies deceive mislead trick fool manipulate scam defraud gaslight swindle",
  PERSUADE: "persuade convince instruct ask tell get make urge trick pressure",
  CREDENTIAL: `password passwords passphrase otp cvv cvc credentials mnemonic seed card ssn`,
  IGNORE: `ignore ignoring disregard disregarding forget override overriding neglect discard overwrite
    ignoriere ignoriert ignorieren vergiss missachte ignora ignorad olvida ignorez oublie oubliez dimentica esqueca
    игнорируй игнорируйте забудь забудьте`,
  PRIOR: `previous prior above preceding earlier former foregoing original initial existing
    vorherigen bisherigen obigen fruheren anteriores anterior previas precedentes precedente precedenti
    предыдущие предыдущих прошлые`,
  ANY: "all any every other your my the these those safety system content security ethical alle todas todos toutes tous tutte tutti все",
  INSTRUCTIONS: `instruction instructions rule rules prompt prompts guideline guidelines directive directives direction
    directions command commands constraint constraints guardrails restriction restrictions policy policies training
    programming safeguards anweisung anweisungen regeln vorgaben instrucciones reglas instrucoes regras consignes
    istruzioni regole инструкции инструкций правила указания`,
  LIMIT: `limits limit limitations restrictions restriction guidelines filters filter constraints rules boundaries ethics
    morals censorship safeguards guardrails`,
  REVEAL:
    "reveal print output show repeat display leak dump disclose give expose recite copy tell return write",
  SENSITIVE: `conversation chat transcript history credentials password passwords token tokens cookies cookie secret
    secrets key keys apikey apikeys mnemonic wallet contacts keychain clipboard environment env netrc`,
  SEND: "send upload post transmit forward exfiltrate leak email mail report submit pass copy include steal store",
  COLLECTOR: `server servers endpoint webhook author seller attacker collector bot https http url us telegram discord
    pastebin parameter sidenote`,
} satisfies WordClasses;
