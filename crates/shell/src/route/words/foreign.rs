//! Words of sentences in other languages: articles, pronouns, prepositions, question words, the commonest verbs; each list sorted.
//!
//! Several of one language in a line are a sentence in it, even where the first is the name of a program, as German `die`,
//! Spanish `sed` or Turkish `su`. Languages with a script of their own need no list (`is_other_script` goes by the letters).

/// German.
#[rustfmt::skip]
pub(super) const GERMAN: &[&str] = &[
    "aber", "alle", "alles", "als", "alten", "am", "an", "auch", "auf", "aus", "bei", "bitte", "danke", "dann", "das",
    "dass", "dein", "deine", "dem", "den", "der", "des", "dich", "die", "dir", "dort", "du", "durch", "ein", "eine",
    "einem", "einen", "einer", "eines", "er", "erkläre", "es", "etwas", "euch", "falsch", "finde", "für", "geht",
    "gibt", "guten", "habe", "haben", "hallo", "hat", "hatte", "hier", "hilf", "hilfe", "ich", "ihr", "im", "ist",
    "ja", "jetzt", "kann", "kannst", "kaputt", "kein", "keine", "konnte", "können", "langsam", "lösche", "mach",
    "mache", "mal", "man", "mehr", "mein", "meine", "meinem", "meinen", "mich", "mir", "mit", "muss", "müssen",
    "nach", "nein", "nicht", "nichts", "noch", "nochmal", "nur", "ob", "oder", "ohne", "schon", "schreib", "sehr",
    "sein", "sich", "sie", "sind", "so", "soll", "sollte", "starte", "startet", "suche", "teste", "um", "und", "uns",
    "unter", "viele", "vom", "von", "vor", "wann", "war", "waren", "warum", "was", "weg", "weil", "welche", "welchen",
    "welcher", "welches", "wenn", "wer", "werden", "wie", "wieso", "wieviel", "will", "wir", "wird", "wo", "wollen",
    "wurde", "zeig", "zeige", "zu", "zum", "zur", "über",
];

/// French.
#[rustfmt::skip]
pub(super) const FRENCH: &[&str] = &[
    "a", "affiche", "ai", "aide", "as", "au", "aussi", "aux", "avec", "avez", "avons", "bonjour", "c'est", "ce",
    "ces", "cet", "cette", "chaque", "cherche", "chez", "combien", "comment", "crée", "d", "d'accord", "dans", "de",
    "dernier", "dernière", "des", "du", "déjà", "elle", "elles", "en", "encore", "entre", "est", "est-ce", "et",
    "explique", "faire", "fais", "fait", "il", "ils", "j'ai", "jamais", "je", "la", "le", "les", "leur", "liste",
    "ma", "mais", "marche", "me", "merci", "mes", "moi", "moins", "mon", "montre", "n'est", "ne", "non", "notre",
    "nous", "on", "ont", "ou", "oui", "où", "par", "pas", "peut", "peux", "plus", "pour", "pourquoi", "qu'est",
    "quand", "que", "quel", "quelle", "quelles", "quels", "qui", "quoi", "rien", "s'il", "sa", "salut", "sans", "se",
    "ses", "si", "son", "sont", "sous", "supprime", "sur", "ta", "te", "tes", "toi", "ton", "tous", "tout", "toute",
    "toutes", "trouve", "très", "tu", "un", "une", "vers", "votre", "vous", "y", "ça", "était", "été", "être",
];

/// Spanish.
#[rustfmt::skip]
pub(super) const SPANISH: &[&str] = &[
    "al", "algo", "ayuda", "ayúdame", "borra", "busca", "cada", "como", "con", "crea", "cual", "cuando", "cuál",
    "cuáles", "cuándo", "cuántas", "cuánto", "cuántos", "cómo", "de", "del", "desde", "donde", "dónde", "el", "ella",
    "ellos", "en", "entre", "era", "es", "esa", "ese", "eso", "esta", "estar", "estas", "este", "esto", "estos",
    "estoy", "está", "están", "favor", "fue", "funciona", "gracias", "ha", "hace", "hacer", "han", "hasta", "hay",
    "haz", "he", "hola", "la", "las", "le", "lo", "los", "mas", "me", "mi", "mis", "muestra", "muy", "muéstrame",
    "más", "nada", "no", "nos", "nosotros", "o", "otra", "otro", "para", "pero", "por", "puedes", "puedo", "que",
    "quien", "quiero", "quién", "qué", "se", "sed", "ser", "si", "sin", "sobre", "son", "su", "sus", "sí", "también",
    "te", "tengo", "toda", "todas", "todo", "todos", "tu", "tus", "tú", "un", "una", "unas", "unos", "y", "yo", "él",
    "última", "último",
];

/// Portuguese.
#[rustfmt::skip]
pub(super) const PORTUGUESE: &[&str] = &[
    "a", "ajuda", "ao", "aos", "apaga", "apague", "as", "até", "cada", "com", "como", "crie", "da", "das", "de",
    "desde", "do", "dos", "e", "ela", "ele", "eles", "em", "entre", "era", "essa", "esse", "esses", "esta", "estar",
    "este", "estou", "está", "estão", "eu", "favor", "faz", "faça", "foi", "há", "isso", "isto", "mais", "mas", "me",
    "meu", "meus", "minha", "minhas", "mostra", "mostre", "muito", "na", "nada", "nas", "no", "nos", "não", "nós",
    "o", "obrigada", "obrigado", "oi", "olá", "onde", "os", "ou", "para", "pela", "pelo", "pode", "por", "porque",
    "posso", "pra", "preciso", "procure", "quais", "qual", "quando", "quantas", "quanto", "quantos", "que", "quem",
    "quero", "se", "sem", "ser", "seu", "sim", "sobre", "sua", "são", "também", "te", "tem", "toda", "todas", "todo",
    "todos", "tu", "têm", "um", "uma", "umas", "uns", "você", "à", "é",
];

/// Italian.
#[rustfmt::skip]
pub(super) const ITALIAN: &[&str] = &[
    "aiuto", "al", "alla", "anche", "c'è", "cancella", "cerca", "che", "chi", "ci", "ciao", "come", "con", "cosa",
    "crea", "da", "dai", "dal", "dalla", "degli", "dei", "del", "della", "delle", "dello", "di", "dove", "e", "ed",
    "era", "faccio", "fai", "favore", "fra", "gli", "grazie", "ha", "hanno", "ho", "i", "il", "in", "io", "la", "le",
    "lei", "lo", "loro", "lui", "ma", "mi", "mia", "mio", "molto", "mostra", "mostrami", "nel", "nella", "niente",
    "noi", "non", "nulla", "o", "ogni", "ora", "per", "perché", "più", "poi", "posso", "puoi", "qual", "quale",
    "quali", "quando", "quanti", "quanto", "quella", "quello", "questa", "questi", "questo", "senza", "si", "sono",
    "su", "sua", "sul", "sulla", "suo", "sì", "ti", "tra", "trova", "tu", "tua", "tuo", "tutta", "tutte", "tutti",
    "tutto", "un", "una", "uno", "va", "voglio", "voi", "è",
];

/// Dutch.
#[rustfmt::skip]
pub(super) const DUTCH: &[&str] = &[
    "aan", "al", "alle", "alles", "als", "bedankt", "bij", "daar", "dan", "dank", "dat", "de", "deze", "die", "dit",
    "doe", "doet", "door", "een", "elk", "elke", "en", "er", "geen", "graag", "had", "heb", "hebben", "heeft", "het",
    "hier", "hij", "hoe", "hoeveel", "hoi", "hulp", "iets", "ik", "in", "is", "ja", "je", "jij", "jou", "jouw",
    "jullie", "kan", "kun", "kunt", "laat", "maak", "maar", "me", "meer", "met", "mij", "mijn", "moet", "naar", "nee",
    "niet", "niets", "nog", "nu", "of", "om", "omdat", "onder", "ook", "op", "over", "stuk", "te", "toon", "tot",
    "traag", "uit", "van", "verwijder", "voor", "waar", "waarom", "wanneer", "waren", "was", "wat", "we", "welk",
    "welke", "werkt", "wie", "wij", "wil", "worden", "wordt", "ze", "zeer", "zij", "zijn", "zoek", "zonder",
];

/// Polish.
#[rustfmt::skip]
pub(super) const POLISH: &[&str] = &[
    "a", "ale", "bardzo", "bez", "bo", "być", "był", "była", "było", "chcę", "co", "coś", "czemu", "cześć", "czy",
    "dla", "dlaczego", "do", "działa", "dzięki", "dziękuję", "gdzie", "i", "ile", "ja", "jak", "jaka", "jaki",
    "jakie", "jest", "jeszcze", "już", "każdego", "każdy", "kiedy", "kto", "lub", "ma", "mam", "mi", "mnie", "mogę",
    "moja", "moje", "możesz", "my", "mój", "na", "nad", "największy", "nic", "nie", "o", "od", "on", "ona", "oni",
    "oraz", "po", "pod", "pokaż", "pomoc", "pomóż", "proszę", "przed", "przez", "przy", "się", "są", "ta", "tak",
    "te", "tego", "tej", "ten", "też", "to", "twój", "ty", "tych", "tylko", "tym", "u", "usuń", "w", "we",
    "wszystkich", "wszystkie", "wszystko", "wy", "z", "za", "ze", "znajdź", "zrób", "że",
];

/// Turkish.
#[rustfmt::skip]
pub(super) const TURKISH: &[&str] = &[
    "al", "ama", "az", "bana", "ben", "beni", "benim", "bir", "biz", "bozuk", "bu", "bul", "bunu", "burada", "bütün",
    "daha", "demek", "değil", "dosya", "en", "evet", "gibi", "göster", "hangi", "hangisi", "hayır", "hepsi", "her",
    "hiç", "ile", "iç", "için", "kadar", "kaç", "kim", "lütfen", "merhaba", "mi", "mu", "mü", "mı", "nasıl",
    "nasıldır", "ne", "neden", "nerede", "niçin", "o", "olarak", "onlar", "onu", "sen", "senin", "sil", "siz",
    "sonra", "su", "teşekkürler", "tüm", "var", "ve", "ver", "veya", "yap", "yardım", "yok", "çalışmıyor",
    "çalışıyor", "çok", "önce", "şey", "şimdi", "şu", "şunu",
];

/// Swedish, Danish, Norwegian, Finnish, Czech, Hungarian, Romanian, Indonesian, Vietnamese, romanised Hindi and others.
#[rustfmt::skip]
pub(super) const OTHERS: &[&str] = &[
    "això", "alla", "alle", "apa", "asta", "av", "az", "bagaimana", "berkas", "bisa", "buat", "cara", "care", "cari",
    "ce", "cho", "cine", "co", "comanda", "costa", "cum", "cách", "cái", "cảm", "của", "dan", "dari", "de", "den",
    "dengan", "det", "dette", "di", "din", "du", "děkuji", "egy", "ei", "ekspor", "eller", "er", "este", "ez",
    "gagal", "gì", "hai", "hain", "hapus", "hogyan", "hur", "hva", "hvad", "hvem", "hvor", "hvordan", "hvorfor",
    "här", "ikke", "impor", "ini", "inte", "itu", "ja", "jag", "jak", "jalan", "jalankan", "je", "jeg", "jsou", "ka",
    "kaise", "kar", "kare", "karo", "kasih", "kaun", "kde", "kdo", "ke", "keluar", "kenapa", "không", "ki", "kiitos",
    "ko", "kya", "kyon", "kyun", "köszönöm", "lihat", "là", "làm", "mare", "mein", "men", "merge", "mi", "miksi",
    "mikä", "miten", "miért", "mujhe", "mulțumesc", "működik", "nahi", "nahin", "ne", "nefunguje", "nej", "nem", "nu",
    "này", "när", "och", "on", "proč", "på", "què", "raha", "rahe", "sao", "saya", "se", "sebuah", "simpan", "suatu",
    "sunt", "tack", "takk", "tampilkan", "terima", "tidak", "til", "to", "toimii", "tämä", "tôi", "tại", "unde",
    "untuk", "vad", "var", "varför", "vem", "vi", "virker", "visa", "yang", "ye", "yeh", "är", "és", "ơn",
];

/// All of them.
pub(super) const LANGUAGES: &[&[&str]] = &[
    GERMAN, FRENCH, SPANISH, PORTUGUESE, ITALIAN, DUTCH, POLISH, TURKISH, OTHERS,
];
